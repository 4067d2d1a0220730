"""Code in a text that is a public name leads to the page of that name; blocks of code end where their text does."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from public_names import meant
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.transforms import SphinxTransform

LEFT_ALONE = (nodes.reference, nodes.title, desc_signature, pending_xref)


class LinkNames(SphinxTransform):
    """Wrap code that means a public name in a reference to it."""

    default_priority = 210  # before references are resolved

    def apply(self, **_: Any) -> None:
        """Called by Sphinx, once a page."""
        for node in self.document.findall(nodes.literal_block):
            if (
                node.rawsource == node.astext()
            ):  # an example ends in a blank line, so that its fence is not taken for output
                node.rawsource = node.astext().rstrip("\n")
                node[:] = [nodes.Text(node.rawsource)]
        here = self.env.docname.removeprefix("reference/")
        for node in list(self.document.findall(nodes.literal)):
            around = node.parent
            while around is not None and not isinstance(around, LEFT_ALONE):
                around = around.parent
            target = None if around is not None else meant(node.astext())
            if target is not None and target != here:
                asked = {"refdomain": "py", "reftype": "obj", "reftarget": target}
                link = pending_xref("", refexplicit=True, refwarn=False, **asked)
                node.replace_self(link)
                link += node


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True}
