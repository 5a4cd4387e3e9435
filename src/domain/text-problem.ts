/** Why a text cannot be what an id, a key or a pattern is compared with; null: it can. */
export function textProblem(text: string, maxBytes: number): string | null {
  if (text === '') return 'is empty';
  if (Buffer.byteLength(text) > maxBytes) return `is longer than ${maxBytes} bytes`;
  if (text.includes('\0')) return 'holds U+0000';
  return text.isWellFormed() ? null : 'holds half a surrogate pair';
}
