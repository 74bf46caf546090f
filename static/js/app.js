// Extras of every page. Pages work without any of this.
import "./keys.js";
import "./live.js";
import "./copy.js";
import "./clock.js";
import "./panel.js";
import "./menus.js";
import "./palette.js";

// After an error the first field that holds one is where to go on.
document.querySelector('main [aria-invalid="true"]')?.focus();
