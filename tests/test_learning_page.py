"""The agent of the page that learns, beside the notebook's classes, and the page in Chromium."""

import inspect
import pickle
import random
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_machine import beside_pytorch, needs_node, node
from test_page import run, show, text  # noqa: F401

import helpers
from browser import value, wait_for
from reacher_page.learn import Batch, learning, learning_of, learning_page, random_batch, untrained
from reacher_page.page import page, script
from small_training import make_plain_agent, split_rows
from tutorial.notebook import learner_with

AGENT = script("physics.js", "learn.js")
UNTRAINED = {"label": "0", "network": None, "episode": 0}


def in_node(statements, **given):
    return node(f"{AGENT} {statements}", **given)


def transitions(count):
    """Random ones: all observations differ, or some gradients are 0 but for rounding."""
    generator, shapes = np.random.default_rng(count), [(33,), (4,), (), (), (33,)]
    parts = [generator.uniform(-1, 1, (count, *shape)).astype(np.float32) for shape in shapes]
    return Batch(*parts)._replace(discounts=np.full(count, 0.97**3, np.float32))


@needs_node
@pytest.mark.parametrize("name", ["plain", "DDPG", "D4PG", "CrossQ"])
def test_a_learner_of_the_notebook_goes_on_in_node(notebook, name):
    """A gradient step, to 1e-5: rounding of some hundred operations in single precision."""
    torch.manual_seed(0)
    if name == "plain":
        settings = notebook.PlainSettings()
        learner = notebook.PlainDDPG(*notebook.plain_networks(settings), settings)
    else:
        learner = learner_with("whole_networks", name)(notebook.Hyperparameters())
    generator, size = np.random.default_rng(3), getattr(learner, "noise_size", 0)

    def given(method, rows):
        """Of what it takes: 64 transitions, or 20 observations."""
        batch = transitions(64)
        known = {"observations": transitions(20).observations, "batch": batch}
        known["weights"] = generator.uniform(0.1, 1, 64).astype(np.float32)
        known["noise"] = generator.standard_normal((rows, size), np.float32) if size else None
        return tuple(known[name] for name in inspect.signature(method).parameters)

    rows = {"act": 20, "td_errors": 1, "learn": 1}
    methods = {name: getattr(learner, name) for name in rows if hasattr(learner, name)}
    beside_pytorch(learner, [(name, given(x, rows[name])) for name, x in methods.items()])


@pytest.fixture(scope="module")
def about(notebook):
    more = {"n_step": 3, "priority_exponent": 0.6, "importance_exponent_start": 0.4}
    more |= {"train_freq": 10, "gradient_steps": 5, "batch_size": 64, "noisy_layers": True}
    torch.manual_seed(0)
    return learning(learner_with("whole_networks")(notebook.Hyperparameters()), more)


@needs_node
def test_the_replay_buffer_is_the_notebooks(notebook):
    """A ring of 8 that was overwritten: the same rows, priorities, samples and weights."""
    generator = np.random.default_rng(0)
    rows, errors = generator.random((11, 5), np.float32), generator.standard_normal(11)
    batch = split_rows(rows, 1)
    points = generator.random((5, 4))

    settings = notebook.PrioritySettings(replay_capacity=8, priority_exponent=0.6)
    theirs = notebook.PrioritizedReplay(settings, SimpleNamespace(random=lambda shape: points))
    for part in (slice(6), slice(6, 11)):
        theirs.add(batch.at(part), errors[part])
    theirs.update(np.array([2, 5, 2]), np.array([3.0, 0.0, 0.2]))
    program = """
        const points = given.points.flat(), random = { uniform: () => points.shift() };
        const replay = new PrioritizedReplay(8, 5, 0.6, random);
        replay.add(Float32Array.from(given.rows.flat()), given.errors);
        [[2, 3], [5, 0], [2, 0.2]].forEach(([index, error]) => replay.update(index, error));
        const samples = given.points.map(() => replay.sample(4, 0.7));
        result = [[...replay.rows], [...replay.tree],
            samples.map(({ indices }) => [...indices]), samples.map(({ weights }) => weights)];"""
    mine = in_node(program, rows=rows, errors=errors, points=points)
    indices, _, weights = theirs.sample((5, 4), beta=0.7)
    np.testing.assert_allclose(mine[0], np.column_stack(theirs.ring.at(slice(None))).ravel())
    np.testing.assert_allclose(mine[1], theirs.tree.sums, rtol=1e-12)
    assert mine[2] == indices.tolist()
    np.testing.assert_allclose(mine[3], weights, rtol=1e-6)


@needs_node
@pytest.mark.parametrize("n", [1, 3])
def test_windows_are_the_notebooks(notebook, n):
    """Their next observations are those of the decision after, as in an episode."""
    generator, theirs, expected = np.random.default_rng(0), notebook.NStepBuffer(n, 0.9), []
    parts = [(6, 2, 3), (5, 2, 2), (5, 2)]  # observations, actions, rewards of 5 decisions
    seen, *others = (generator.random(shape).astype(np.float32) for shape in parts)
    for k, decision in enumerate(zip(seen, *others, strict=False)):
        is_last, never = np.full(2, k == 4), np.zeros(2, bool)
        expected += theirs.add(*decision, seen[k + 1], ~is_last, never, is_last)
    decisions = list(zip(seen[:4], *(each[:4] for each in others), seen[1:5], strict=True))
    program = """
        const windows = new NStepBuffer(given.n, 0.9);
        const names = ["observations", "actions", "rewards", "following"];
        const named = (part, k) => [names[k], Float32Array.from(part.flat())];
        const rows = given.decisions.flatMap(
            (parts) => windows.append(Object.fromEntries(parts.map(named))));
        result = [...rows, ...windows.flush()].map((found) => [...found]);"""
    found = in_node(program, n=n, decisions=decisions)
    rows = [np.column_stack(batch).ravel() for batch in expected]
    np.testing.assert_allclose(found, rows, rtol=1e-6)


@needs_node
def test_schedules_are_the_notebooks(notebook):
    settings = notebook.Hyperparameters(anneal_episodes=3, anneal_share=0.8)
    theirs, expected = notebook.Schedules(settings, 30.0), []
    scores = [[1.0, 3.0], [20.0, 30.0], [10.0, 12.0], [26.0, 26.0], *4 * [[30.0, 31.0]]]
    for arms in scores:
        theirs.end_episode(np.repeat(arms, 3))  # means over four episodes count
        expected.append([theirs.noise_factor(), theirs.anneal_factor()])
    program = """
        const schedules = new Schedules(given.settings);
        result = given.scores.map((arms) => {
            schedules.endEpisode(arms.flatMap((score) => Array(3).fill(score)));
            return [schedules.noiseFactor(), schedules.annealFactor()];
        });"""
    found = in_node(program, scores=scores, settings=settings.model_dump())
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert expected[-1][1] < expected[3][0] < 1


TRAIN = """
    const { programs, settings, modules, arms } = given.about, random = new Random(given.seed);
    const machine = await Machine.load(programs, modules, random), taken = machine.taken("act");
    const agent = new Agent(machine, { ...settings, ...given.choices }, random, 1 << 15);
    const random2 = new Random(1), count = given.choices.arms ?? arms;
    const training = new Training(agent, count, random2, TRAINED_WORLD, given.every);
    const rewards = [];
    const remember = agent.remember.bind(agent);
    agent.remember = (step) => {
        rewards.push(step.rewards.reduce((a, b) => a + b));
        remember(step);
    };
    let score = null;
    while (score === null) score = training.decide();
    const now = machine.taken("act"), away = (x, y) => x === y ? 0 : Math.abs(x - y); // infinite
    const moved = now.map((room, k) => Math.max(...room.map((x, i) => away(x, taken[k][i]))));
    result = { score, rewards, moved, updates: agent.updates, size: agent.replay.size };
"""


@needs_node
def test_an_episode_of_learning(about):
    """990 decisions in ten steps each bring five gradient steps, from 1000 transitions on."""
    found = in_node(TRAIN, about=about, seed=0, choices={}, every=1)
    assert found["updates"] == 5 * (100 - 5) and found["size"] == 20 * (1000 - 2)
    assert max(found["moved"]) > 0.01
    choices = {"arms": 2, "mirrors": 0, "gradient_steps": 0}  # these need no new export
    signs = 'result.signs = Array.from(machine.room(programs.state["self.actor.frame.signs"]));'
    found = in_node(TRAIN + signs, about=about, seed=0, choices=choices, every=30)
    assert found["size"] == 2 * (1000 - 2) and found["signs"] == 74 * [1]
    assert found["updates"] == 0 and sorted(found["moved"])[-2:] == [0, 2]  # of signs alone
    assert not ((np.flatnonzero(found["rewards"]) + 1) % 30).any()


@pytest.mark.parametrize("kind", ["plain", "whole"])
def test_a_trained_agent_begins_from_nothing(notebook, kind):
    """That of an early section, and one that is made from settings."""
    plain = kind == "plain"
    agent = make_plain_agent(notebook.normalized_networks) if plain else helpers.quick_agent()

    def first_weights():
        torch.manual_seed(0)
        learner = untrained(agent)
        networks = torch.nn.ModuleList([learner.actor, learner.critic])
        return torch.nn.utils.parameters_to_vector(networks.parameters())

    before = first_weights()
    noise = {} if plain else {"noise": torch.ones(1, agent.learner.noise_size)}
    agent.learner.learn(Batch(*map(torch.from_numpy, random_batch(8))), **noise)
    assert torch.equal(first_weights(), before)


def test_noise_that_a_page_does_not_draw_is_named(notebook):
    class Louder(notebook.PlainAgent):
        def torque_noise(self, shape):
            return 1.5 * super().torque_noise(shape)

    with pytest.raises(ValueError, match="torque_noise of Louder does something"):
        learning_of(make_plain_agent(agent=Louder))


@pytest.fixture
def made(notebook, monkeypatch):
    """Makes an agent of these classes, with all settings; nobody needs its programs."""
    monkeypatch.setattr("torch_phases.program.export", lambda *given: {})
    settings = notebook.Hyperparameters(replay_capacity=50, engine="torch")
    learner = notebook.NoisyDDPG(*notebook.noisy_networks(settings), settings)

    def made(agent, memory=notebook.PrioritizedReplay):
        generator = np.random.default_rng(0)
        return agent(learner, memory(settings, generator), generator, settings)

    return made


def test_a_page_has_the_parts_of_its_agent(notebook, made):
    """Whatever the settings say: agents of early sections do not look at those of later ones."""
    early = notebook.PlainAgent, notebook.NStepAgent
    agents = [made(kind, notebook.UniformReplay) for kind in early]
    agents += made(notebook.PrioritizedAgent), made(notebook.NoisyAgent), helpers.quick_agent()
    names = "n_step", "priority_exponent", "noisy_layers", "noise_schedule", "anneal_episodes"
    found = [learning_of(agent)["settings"] for agent in agents]
    assert [[settings[name] for name in names] for settings in found] == [
        [1, 0, False, "constant", None],
        [3, 0, False, "constant", None],
        [3, 0.6, False, "constant", None],
        [3, 0.6, True, "constant", None],
        [3, 0.6, True, "best_score", 8],
    ]


@pytest.mark.parametrize("same", ["__module__", "__qualname__"])  # in its cells, and elsewhere
@pytest.mark.parametrize("method", ["act", "remember", "learn_if_due", "weight_noise", "sample"])
def test_what_a_page_does_otherwise_is_named(notebook, made, method, same):
    kinds = {"agent": notebook.NoisyAgent, "memory": notebook.PrioritizedReplay}
    part = "memory" if method == "sample" else "agent"
    own = getattr(kinds[part], method)

    def mine(*given):
        return own(*given)

    setattr(mine, same, getattr(own, same))
    kinds[part] = type("Mine", (kinds[part],), {method: mine})
    with pytest.raises(ValueError, match=f"cannot run {method} of Mine"):
        learning_of(made(**kinds))


def everything(agent):
    """An agent's numbers and all generators, as bytes."""
    learner = vars(agent.learner).values()
    parts = [each.state_dict() for each in learner if hasattr(each, "state_dict")]
    chance = random.getstate(), np.random.get_state(), torch.get_rng_state()
    every = parts, chance, agent.generator.bit_generator.state
    return pickle.dumps(torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.tolist, every))


def test_an_edited_learner_begins_by_itself_and_can_be_saved(show, notebook, tmp_path):  # noqa: F811
    """Neither generators nor the agent are others for the page that was made of it."""

    class Edited(notebook.PlainDDPG):
        def learn(self, batch):
            super().learn(batch._replace(rewards=batch.rewards.clamp(0, 0.3)))

    options = {"train_freq": 10, "gradient_steps": 5, "gaussian_sigma": 0.7}
    agent = make_plain_agent(notebook.normalized_networks, Edited, **options)
    before = everything(agent)
    learning_page(agent, tmp_path / "mine.html", arms=4, what='It "had" 30 of 40 points.')
    assert everything(agent) == before
    content = (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert '"gaussian_sigma":0.7' in content.replace(" ", "")
    driver = show(content, motion="no-preference")
    wait_for(lambda: "gradient steps" in text(driver, "#progress"))
    names = "[...document.querySelectorAll('#choices select')].map(({ id }) => id).join()"
    # Neither priorities nor noise in its weights.
    assert value(driver, names) == "practice,mirrors,n,explore,steps,goal,pay"
    wait_for(lambda: value(driver, "page.data.scores.length") == 1)
    driver.execute_script("""
        URL.createObjectURL = (blob) => { blob.text().then((text) => { page.saved = text; }); };
        HTMLAnchorElement.prototype.click = () => 0;
        document.getElementById("save").click();""")
    wait_for(lambda: value(driver, "page.saved"))
    content = value(driver, "page.saved")
    driver = show(content)
    assert "30 of 40" not in content and text(driver, "#story").startswith("Somebody let this")
    prompts = driver.find_elements("css selector", "#stored-prompts li")
    [shown] = [each.text for each in prompts if each.is_displayed()]
    assert shown.startswith("Speed up the goals.")  # it has neither other episodes nor an arm 7
    assert "saved after 1 episode" in value(driver, "page.actors[0].title")
    act = "page.actors[0].network.act([new Float32Array(33).fill(0.3)])[0][0]"
    wait_for(lambda: value(driver, act) != 0)  # its machine is there
    assert text(driver, "#begin") == "Learn on"


def test_the_page_lets_it_learn(show, about):  # noqa: F811
    content = page([UNTRAINED], arms=4, learning=about)
    assert len(content) < 4e5
    driver = show(content, "#learn=3&pay=30&n=1", motion="no-preference")
    wait_for(lambda: "episode 2" in text(driver, "#progress"))
    assert value(driver, "page.actors.map(({ label }) => label).join()") == "0,1,now"
    assert value(driver, "page.data.scores.length") == 1
    assert value(driver, "location.hash") == "#learn=3&n=1&pay=30"
    assert value(driver, "page.frames.rate") < 33
    driver.execute_script("""
        Object.defineProperty(document, "hidden", { get: () => true });
        document.dispatchEvent(new Event("visibilitychange"));""")
    time.sleep(0.5)  # what it was doing ends
    told = text(driver, "#progress")
    time.sleep(1)
    assert text(driver, "#progress") == told  # a hidden tab waits
    acted = "page.arms.map((arm) => [...arm.action])"
    actions = []
    for k in (0, 1):
        driver.execute_script(f"page.train({k}); for (let i = 0; i < 8; i++) page.tick()")
        actions.append(value(driver, acted))
    assert np.abs(np.subtract(*actions)).max() > 1e-3  # it has learned, and both are kept
    angle = value(driver, "page.arms[0].angle")
    driver.execute_script("page.pullGoals(30)")
    assert value(driver, "page.arms[0].angle") > angle + 25
    driver.execute_script("page.learning.show(page.learning.kept)")
    assert value(driver, "[page.actors.length, page.data.scores.length]") == [1, 0]


def test_two_learners_stand_side_by_side(show, about):  # noqa: F811
    driver = show(page(arms=5, learning=about), "#learn=0&pay=30&beside=1")
    wait_for(lambda: value(driver, "page.learning.pupils.every(({ scores }) => scores.length)"))
    driver.execute_script("for (let i = 0; i < 8; i++) page.tick()")
    goals, actions = (value(driver, f"page.arms.map((arm) => arm.{x})") for x in ("goal", "action"))
    assert goals[0] == goals[1] != goals[2] == goals[3]
    assert np.abs(np.subtract(actions[0], actions[1])).max() > 1e-3
    assert "Without the three: " in text(driver, "#status")
    assert value(driver, "document.querySelector('#curve .second').points.length") >= 1


def test_you_against_the_agent(show, about):  # noqa: F811
    driver = show(page(arms=2, learning=about), "#learn=0")
    wait_for(lambda: value(driver, "page.actors.length") > 1)
    driver.find_element("id", "duel").click()
    driver.execute_script("page.set('playing', false)")
    key = "const event = new KeyboardEvent(arguments[0], { key: 'd', bubbles: true });"
    press = f"{key} document.getElementById('view').dispatchEvent(event)"
    for kind, torque in (("keydown", 1), ("keyup", 0)):
        driver.execute_script(press, kind)
        assert value(driver, "page.sides.torques") == [0, torque, 0, 0]
    assert value(driver, "page.arms[0].goal") == value(driver, "page.arms[1].goal")
    run(driver, 2000)  # 40 s
    wait_for(lambda: text(driver, "#message").startswith("You: 0.0 points. The agent: "))
    assert value(driver, "page.sides") is None


def test_without_simd_the_page_says_so(show, about):  # noqa: F811
    content = page([UNTRAINED], arms=2, learning=about)
    old = content.replace('<script>\n"use strict";', "<script>WebAssembly.validate = () => false;")
    driver = show(old, "#learn")
    assert "no WebAssembly SIMD" in text(driver, "#progress")
    assert not driver.find_element("id", "begin").is_enabled()
    assert value(driver, "page.state.episode") == "0"


def test_what_a_page_cannot_train_is_said():
    class Strange:
        actor = None

        def act(self, observations, temperature):
            return observations

    with pytest.raises(ValueError, match="argument temperature of act"):
        learning(Strange())
