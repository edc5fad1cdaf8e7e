// A click makes a picture as large as the window, and a button stops one that moves.
addEventListener("load", () => setTimeout(() => { // a hit of the search opens at the word
  const hit = location.hash ? null : document.querySelector("article .highlighted");
  if (hit) scrollBy({ behavior: "instant", top: hit.getBoundingClientRect().top - 200 });
}, 50)); // Sphinx marks hits 10 ms after it is ready, which may be after `load`
addEventListener("DOMContentLoaded", () => {
  const dialog = document.body.appendChild(document.createElement("dialog"));
  dialog.className = "zoom";
  dialog.onclick = () => dialog.close();
  for (const picture of document.querySelectorAll("article img")) {
    if (picture.closest("a")) continue;
    const show = () => { dialog.replaceChildren(picture.cloneNode()); dialog.showModal(); };
    Object.assign(picture, { role: "button", tabIndex: 0, title: "Enlarge", onclick: show });
    picture.classList.add("zooms");
    picture.onkeydown = (event) => event.key === "Enter" && show();
  }
  for (const picture of document.querySelectorAll("img.moving")) picture.decode().then(() => {
    const still = document.createElement("canvas"), button = document.createElement("button");
    Object.assign(still, { width: picture.naturalWidth, height: picture.naturalHeight });
    still.getContext("2d").drawImage(picture, 0, 0); // its first frame
    const move = (moves) => {
      picture.hidden = !moves;
      still.hidden = moves;
      button.textContent = moves ? "Pause" : "Play";
    };
    button.className = "pause";
    button.onclick = () => move(picture.hidden);
    picture.after(still, button);
    move(!matchMedia("(prefers-reduced-motion: reduce)").matches);
  });
});
