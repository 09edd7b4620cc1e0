function o(e){return e.role==="owner"||e.role==="admin"||e.agents.includes("editor")}export{o as a};
