"""Texts that would run a script, or load something, on a page that took them for more than texts."""

from __future__ import annotations

from tests.support.browser import Page

_RUN = "window.ran=1"
PAYLOADS = (
    f"<script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f"<img src='x' onerror='{_RUN}'>",
    f'"><img src=x onerror={_RUN}>',
    f"'><svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg/onload={_RUN}>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    f"<body onload={_RUN}>",
    f"<iframe src=javascript:{_RUN}></iframe>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    f"<a href=javascript:{_RUN}>go</a>",
    f"[go](javascript:{_RUN})",
    f"[go](data:text/html,<script>{_RUN}</script>)",
    f"![go](x' onerror='{_RUN})",
    f"<details open ontoggle={_RUN}>x</details>",
    f"<input autofocus onfocus={_RUN}>",
    f"<select autofocus onfocus={_RUN}>",
    f"<textarea autofocus onfocus={_RUN}>",
    f"<video><source onerror={_RUN}></video>",
    f"<video src=x onerror={_RUN}></video>",
    f"<audio src=x onerror={_RUN}></audio>",
    f"<object data=javascript:{_RUN}></object>",
    f"<embed src=javascript:{_RUN}>",
    f"<form action=javascript:{_RUN}><button>go</button></form>",
    f"<button formaction=javascript:{_RUN}>go</button>",
    f"<math><mi xlink:href=javascript:{_RUN}>x</mi></math>",
    f"<marquee onstart={_RUN}>x</marquee>",
    f"<link rel=stylesheet href=javascript:{_RUN}>",
    f"<meta http-equiv=refresh content='0;url=javascript:{_RUN}'>",
    f"<base href=javascript:{_RUN}//>",
    f"<template><img src=x onerror={_RUN}></template>",
    f"<noscript><p title='</noscript><img src=x onerror={_RUN}>'></noscript>",
    f"<p onclick={_RUN} onmouseover={_RUN}>x</p>",
    f"<style onload={_RUN}></style>",
    f"</pre><img src=x onerror={_RUN}>",
    f"</textarea><script>{_RUN}</script>",
    f"{{{{constructor.constructor('{_RUN}')()}}}}",
    f"${{{_RUN}}}",
    f"<scr<script>ipt>{_RUN}</scr</script>ipt>",
)


def packed(longest: int) -> list[str]:
    """All of them, in as few texts of so many characters at most as their order allows."""
    texts = [""]
    for each in PAYLOADS:
        if len(texts[-1]) + len(each) > longest:
            texts.append("")
        texts[-1] += each
    return texts


async def ran(page: Page) -> list[str]:
    """What came of texts on the page beyond being read: a script that ran, an element or an attribute that they made."""
    found: list[str] = await page.run(
        """const made = [...document.querySelectorAll('main :is(script, iframe, object, embed, img, base, meta, link, style)')];
        const acts = [...document.querySelectorAll('main *')].filter(e => [...e.attributes].some(
          a => a.name.startsWith('on') || /^(javascript|data):/i.test(a.value)));
        return [...(window.ran ? ['ran'] : []), ...made.concat(acts).map(e => e.outerHTML.slice(0, 120))]"""
    )
    return found
