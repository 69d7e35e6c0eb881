"use strict";
for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {
      // Some browsers give local files no clipboard: then the text is marked, ready to be copied.
      getSelection().selectAllChildren(code);
      button.textContent = "press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "copy"; }, 2000);
  });
}
