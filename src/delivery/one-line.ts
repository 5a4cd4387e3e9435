/** Nothing that ends a line, or that a terminal or a mail reader would obey. */
export function oneLine(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
}
