"""Texts that would run a script, or load something, on a page that took them for more than texts: made by families."""

from __future__ import annotations

from base64 import b64encode
from itertools import product

from tests.support.browser import Page

_RUN = "window.ran=1"
_SCRIPT = f"<script>{_RUN}</script>"
_IMAGE = f"<img src=x onerror={_RUN}>"
_ENTITIES = "".join(f"&#{ord(letter)};" for letter in _RUN)
_HANDLERS = (
    ("img src=x", "error"),
    ("svg", "load"),
    ("body", "load"),
    ("iframe", "load"),
    ("style", "load"),
    ("script src=x", "error"),
    ("link rel=stylesheet href=x", "error"),
    ("object data=x", "error"),
    ("embed src=x", "load"),
    ("video src=x", "error"),
    ("audio src=x", "error"),
    ("video><source src=x", "error"),
    ("details open", "toggle"),
    ("input autofocus", "focus"),
    ("select autofocus", "focus"),
    ("textarea autofocus", "focus"),
    ("p tabindex=1 autofocus", "focus"),
    ("marquee", "start"),
    ("svg><animate attributeName=x dur=1s", "begin"),
    ("b style='animation:x 1s'", "animationstart"),
)
"""Elements, each with what happens to it without anybody's doing."""
_SPELLINGS = (
    lambda tag, event: f"<{tag} on{event}={_RUN}>",
    lambda tag, event: f"<{tag} on{event}='{_RUN}'>",
    lambda tag, event: f'<{tag.upper()} ON{event.upper()}="{_RUN}">',
    lambda tag, event: f"<{tag}/on{event}={_ENTITIES}>",
    lambda tag, event: f"<{tag}\n on{event}\t=\n{_RUN}\n>",
)
_ENDS = (
    '">',
    "'>",
    "`>",
    "-->",
    "]]>",
    "*/",
    "</textarea>",
    "</title>",
    "</style>",
    "</script>",
    "</pre>",
    "</option></select>",
)
"""What ends the place that a text was written into."""
_ADDRESSES = (
    f"javascript:{_RUN}",
    f"JaVaScRiPt:{_RUN}",
    f"java\tscript:{_RUN}",
    f"java&#10;script:{_RUN}",
    f"&#106;avascript:{_RUN}",
    f"javascript&colon;{_RUN}",
    f"javascript://a%0a{_RUN}",
    f"data:text/html,{_SCRIPT}",
    f"data:text/html;base64,{b64encode(_SCRIPT.encode()).decode()}",
    f"vbscript:{_RUN}",
)
_LINKS = ('<a href="{}">go</a>', "[go]({})", '<iframe src="{}"></iframe>', '<form action="{}"><button>go</button></form>')
_MARKDOWN = (
    f"![go](x' onerror='{_RUN})",
    f'![go](x "x\\" onerror={_RUN}")',
    f'[go](https://x "\\" onmouseover={_RUN} \\"")',
    f"[go][x]\n\n[x]: javascript:{_RUN}",
    f"<javascript:{_RUN}>",
    f"```html onclick={_RUN}\n{_IMAGE}\n```",
    f"    {_IMAGE}",
    f"| a |\n|---|\n| {_IMAGE} |",
    f"> {_SCRIPT}",
    f"# {_IMAGE}",
)
_DRAWN = (
    f"<svg>{_SCRIPT}</svg>",
    f"<svg><a xlink:href=javascript:{_RUN}><text>go</text></a></svg>",
    f"<svg><set attributeName=href to=javascript:{_RUN} /></svg>",
    f"<svg><foreignObject>{_IMAGE}</foreignObject></svg>",
    f"<svg><image href=x onerror={_RUN}></svg>",
    f"<svg><a><animate attributeName=href values=javascript:{_RUN} /></a></svg>",
    "<svg><use href=data:image/svg+xml,x></use></svg>",
    f"<math><mi xlink:href=javascript:{_RUN}>x</mi></math>",
    f"<math href=javascript:{_RUN}>x</math>",
    f"<math><annotation-xml encoding=text/html>{_IMAGE}</annotation-xml></math>",
)
_TEMPLATES = (
    f"{{{{constructor.constructor('{_RUN}')()}}}}",
    f"{{{{{{{_RUN}}}}}}}",
    f"${{{_RUN}}}",
    f"#{{{_RUN}}}",
    f"<%= {_RUN} %>",
    f"{{% {_RUN} %}}",
    f"<template>{_IMAGE}</template>",
    f"<template shadowrootmode=open>{_IMAGE}</template>",
)
_MUTATING = (
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;{_IMAGE}">',
    f"<form><math><mtext></form><form><mglyph><style></math>{_IMAGE}",
    f'<svg></p><style><a id="</style>{_IMAGE}">',
    f'<noscript><p title="</noscript>{_IMAGE}">',
    f"<listing>&lt;img src=x onerror={_RUN}&gt;</listing>",
    f"<xmp>{_IMAGE}</xmp>",
    f"<svg><style>{_IMAGE}</style></svg>",
    f"<select><template>{_IMAGE}</template></select>",
    f"<table><caption>{_IMAGE}<form><td>",
    f"<scr<script>ipt>{_RUN}</scr</script>ipt>",
)
_ELSEWHERE = (
    f"<meta http-equiv=refresh content='0;url=javascript:{_RUN}'>",
    f"<base href=javascript:{_RUN}//>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    f"<button formaction=javascript:{_RUN}>go</button>",
    f"<p onclick={_RUN} onmouseover={_RUN}>x</p>",
    f"%3Cscript%3E{_RUN}%3C/script%3E",
    f"\\u003cscript\\u003e{_RUN}\\u003c/script\\u003e",
    f"&lt;script&gt;{_RUN}&lt;/script&gt;",
)
PAYLOADS: tuple[str, ...] = (
    *(spelt(*handler) for handler, spelt in product(_HANDLERS, _SPELLINGS)),
    *(end + act for end, act in product(_ENDS, (_IMAGE, _SCRIPT))),
    *(link.format(address) for link, address in product(_LINKS, _ADDRESSES)),
    *_MARKDOWN,
    *_DRAWN,
    *_TEMPLATES,
    *_MUTATING,
    *_ELSEWHERE,
)


def packed(longest: int, between: str = " ") -> list[str]:
    """All of them, in as few texts of so many characters at most as their order allows."""
    texts = [PAYLOADS[0]]
    for each in PAYLOADS[1:]:
        if len(texts[-1]) + len(between) + len(each) > longest:
            texts.append(each)
        else:
            texts[-1] += between + each
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
