/** Bytes as text that any program can read: what is not UTF-8 shows as U+FFFD, U+0000 as its symbol. */
export function readableText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8').replaceAll('\0', '␀');
}
