// A copy button beside every command. Without this file, or without a clipboard, the command is selected by one click instead.
"use strict";

function withButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = document.body.dataset.copy;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = document.body.dataset.copied;
    } catch {
      button.textContent = document.body.dataset.notCopied;
    }
  });
  block.before(button);
}

if (navigator.clipboard) {
  document.querySelectorAll("pre.command").forEach(withButton);
}
