import type { VNode } from 'preact';

const hidden = /([\p{Cc}\p{Cf}]+)/u;
const short: Readonly<Record<string, string>> = { '\t': '\\t', '\r': '\\r', '\n': '\\n', '\0': '\\0' };

/** As programmers write it: few fonts have symbols for control characters. */
function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return short[character] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A text from elsewhere as it is: control characters and marks that reorder text are shown by their names, and told apart. */
export function VisibleText({ text }: { readonly text: string }): VNode {
  // Every other piece is what the pattern found.
  const pieces = text.split(hidden);
  return (
    <>
      {pieces.map((piece, at) =>
        at % 2 === 0 ? (
          piece
        ) : (
          <span key={`${at} ${piece}`} class="control-character">
            {[...piece].map(escaped).join('')}
          </span>
        ),
      )}
    </>
  );
}

/** A value of a property: texts as they are, all else as JSON. */
export function Value({ of }: { readonly of: unknown }): VNode {
  if (of === undefined || of === null) return <span class="faint">–</span>;
  if (of === '') return <span class="faint">empty</span>;
  return <VisibleText text={typeof of === 'string' ? of : JSON.stringify(of)} />;
}
