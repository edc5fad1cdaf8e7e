"""A stand-in for the Unity build: the embedded physics behind ML-Agents v0.4's gRPC protocol.

    python -P -m reacher.unity.server --port 5005 --num-agents 20 --seed 0

Like the Unity player it connects to the Python side, which listens at that port; sends the
academy's parameters; answers resets and steps; and ends when the Python side quits or goes. Its
goals are those that the Unity build draws with the same seed, reset by reset.
"""

from __future__ import annotations

import argparse
import contextlib
import sys

import grpc
import numpy as np

from reacher.environment import ReacherVectorEnv
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE, RESET_PARAMETERS
from reacher.unity.protocol import API_VERSION, EXCHANGE, OK, messages

BRAIN_NAME = "ReacherBrain"
CONNECT_TIMEOUT = 60.0  # s
CONTINUOUS, EXTERNAL = 1, 2  # of the protocol's SpaceTypeProto and BrainTypeProto
RESET = 1  # of its CommandProto; 0 is STEP
CHANNEL_OPTIONS = [
    ("grpc.enable_http_proxy", 0),  # some machines route even localhost to a proxy
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def main() -> None:
    """Play the Unity player until the Python side quits or goes."""
    parser = argparse.ArgumentParser(prog="python -m reacher.unity.server", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="where the Python side listens")
    parser.add_argument("--num-agents", type=int, default=20, help="number of arms")
    parser.add_argument("--seed", type=int, default=0, help="of the goals, if the other sends 0")
    for flag in ("-nographics", "-batchmode"):
        parser.add_argument(flag, action="store_true", help="taken, as Unity's players do")
    options = parser.parse_args()
    environment = ReacherVectorEnv(options.num_agents, options.seed, goals="unity")
    with grpc.insecure_channel(f"localhost:{options.port}", CHANNEL_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_TIMEOUT)
        except grpc.FutureTimeoutError:
            sys.exit(f"nobody listens at port {options.port}: start unityagents first")
        message = messages.UnityMessage
        call = channel.unary_unary(EXCHANGE, message.SerializeToString, message.FromString)
        with contextlib.suppress(grpc.RpcError):  # the Python side has gone
            _converse(call, environment)


def _converse(call, environment: ReacherVectorEnv) -> None:
    """Send answers and carry out the commands that come back, until one is not OK."""
    academy = messages.UnityOutput(rl_initialization_output=_academy_parameters())
    message = call(_message(academy))
    if seed := message.unity_input.rl_initialization_input.seed:
        environment = ReacherVectorEnv(environment.num_envs, seed, goals="unity")
    output = messages.UnityOutput()  # nothing to tell yet: only asks for the first command
    while (message := call(_message(output))).header.status == OK:
        command = message.unity_input.rl_input
        if command.command == RESET:
            # The shortest number with these 32 bits is the one that the user has typed.
            parameters = {
                name: float(str(np.float32(value)))
                for name, value in command.environment_parameters.float_parameters.items()
            }
            observations, _ = environment.reset(options=parameters)
            rewards = is_last = np.zeros(environment.num_envs)
            actions = np.zeros((environment.num_envs, ACTION_SIZE))
        else:
            sent = command.agent_actions[BRAIN_NAME].value
            actions = np.array([list(action.vector_actions) for action in sent])
            observations, rewards, _, is_last, _ = environment.step(actions)
            actions[is_last] = 0  # the next episode has begun
        infos = _agent_infos(observations, rewards, is_last, actions)
        output = messages.UnityOutput(rl_output=infos)


def _message(output: messages.UnityOutput) -> messages.UnityMessage:
    message = messages.UnityMessage(unity_output=output)
    message.header.status = OK
    return message


def _academy_parameters() -> messages.UnityRLInitializationOutput:
    academy = messages.UnityRLInitializationOutput(name="Academy", version=API_VERSION)
    academy.brain_parameters.append(
        messages.BrainParametersProto(
            brain_name=BRAIN_NAME,
            brain_type=EXTERNAL,
            vector_observation_size=OBSERVATION_SIZE,
            num_stacked_vector_observations=1,
            vector_observation_space_type=CONTINUOUS,
            vector_action_size=ACTION_SIZE,
            vector_action_descriptions=[""] * ACTION_SIZE,
            vector_action_space_type=CONTINUOUS,
        )
    )
    academy.environment_parameters.float_parameters.update(RESET_PARAMETERS)
    return academy


def _agent_infos(*arrays: np.ndarray) -> messages.UnityRLOutput:
    """Of observations, rewards, whether a time limit is reached, and last actions of all arms."""
    output = messages.UnityRLOutput(global_done=False)
    lines = zip(*(array.tolist() for array in arrays), strict=True)
    output.agentInfos[BRAIN_NAME].value.extend(
        messages.AgentInfoProto(
            stacked_vector_observation=observation,
            reward=reward,
            done=bool(is_last),
            max_step_reached=bool(is_last),
            id=agent,
            stored_vector_actions=actions,
        )
        for agent, (observation, reward, is_last, actions) in enumerate(lines)
    )
    return output


if __name__ == "__main__":
    main()
