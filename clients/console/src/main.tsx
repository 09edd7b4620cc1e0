import { render } from "preact";

import { App } from "./shell";
import "./styles/index.css";
import { loadTexts } from "./text";
import { showTheme } from "./theme";

showTheme();
await loadTexts();
render(<App />, document.getElementById("app") as HTMLElement);
