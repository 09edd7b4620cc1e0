/** Texts that a model or a person wrote, as what they mean and never as what they could do. */

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { useMemo } from "preact/hooks";

const plain = new MarkdownIt({ html: false, linkify: true, breaks: true });
const mixed = new MarkdownIt({ html: true, linkify: true, breaks: true });
// The columns of tables are aligned by `style`, which the page's policy refuses with a complaint for every cell.
for (const { renderer } of [plain, mixed]) {
  renderer.rules["td_open"] = renderer.rules["th_open"] = (tokens, place, options, _, self) => {
    const token = tokens[place];
    const side = /text-align:(\w+)/.exec(String(token?.attrGet("style") ?? ""))?.[1];
    if (token) token.attrs = side ? [["align", side]] : null;
    return self.renderToken(tokens, place, options);
  };
}

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

/** Markdown with all that could run, load or imitate the page taken out.
 *
 * @param html whether it may hold HTML; without this, tags are shown as they were written.
 */
export function Markdown(props: { text: string; html?: boolean }) {
  const html = useMemo(() => DOMPurify.sanitize((props.html ? mixed : plain).render(props.text), ALLOWED), [props.text, props.html]);
  return <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />;
}
