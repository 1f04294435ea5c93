"""Text, bytes and token ids: tables, re-encoding, the assistant's view of the text.

Knows tokenizers (the `tokenizers` library) and nothing of models, tensors or pages.
"""

from uag_core.tokenization.byte_table import ByteTable
from uag_core.tokenization.codec import TokenizerCodec
from uag_core.tokenization.ledger import AssistantLedger, TargetLedger
from uag_core.tokenization.reencode import reencode

__all__ = ["AssistantLedger", "ByteTable", "TargetLedger", "TokenizerCodec", "reencode"]
