/** Texts that a model or a person wrote, as what they mean and never as what they could do. */

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { useMemo } from "preact/hooks";

const markdown = new MarkdownIt({ html: true, linkify: true, breaks: true });
// The columns of tables are aligned by `style`, which the page's policy refuses with a complaint for every cell.
markdown.renderer.rules["td_open"] = markdown.renderer.rules["th_open"] = (tokens, place, options, _, renderer) => {
  const token = tokens[place];
  const side = /text-align:(\w+)/.exec(String(token?.attrGet("style") ?? ""))?.[1];
  if (token) token.attrs = side ? [["align", side]] : null;
  return renderer.renderToken(tokens, place, options);
};

/** No images, since asking for one tells its server what the address says; no styles, ids or forms. */
const ALLOWED = {
  ALLOWED_TAGS: ["a", "b", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre", "s", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["align", "href", "colspan", "rowspan"],
  ALLOWED_URI_REGEXP: /^https?:/i,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.setAttribute("target", "_blank");
  }
});

/** Markdown, or HTML, with all that could run, load or imitate the page taken out. */
export function Markdown(props: { text: string }) {
  const html = useMemo(() => DOMPurify.sanitize(markdown.render(props.text), ALLOWED), [props.text]);
  return <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />;
}
