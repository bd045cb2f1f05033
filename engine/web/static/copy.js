// A copy button beside every command. Without this file, or without a clipboard, the command is selected by one click instead.
"use strict";

function withButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied: select it";
    }
  });
  block.before(button);
}

if (navigator.clipboard) {
  document.querySelectorAll("pre.command").forEach(withButton);
}
