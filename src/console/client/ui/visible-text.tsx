import { Fragment, type VNode } from 'preact';
import { splitHidden, visibleText } from '../lib/format.ts';

const short: Readonly<Record<string, string>> = { '\t': '\\t', '\r': '\\r', '\n': '\\n', '\0': '\\0' };

/** As programmers write it: few fonts have symbols for control characters. */
function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return short[character] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A text from elsewhere as it is: control characters and marks that reorder text are shown by their names, and told apart. */
export function VisibleText({ text }: { readonly text: string }): VNode {
  return (
    <>
      {splitHidden(text).map((piece, at) =>
        piece.isHidden ? (
          <span key={`${at} ${piece.text}`} class="control-character">
            {[...piece.text].map(escaped).join('')}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

/** The name of a file or of a job: where it is too long for its line it breaks behind a mark, not within a word. */
export function FileName({ name }: { readonly name: string }): VNode {
  return (
    <span class="job-name">
      {visibleText(name)
        .split(/(?<=[_.])/)
        .map((part, at) => (
          <Fragment key={`${at} ${part}`}>
            {at === 0 ? null : <wbr />}
            {part}
          </Fragment>
        ))}
    </span>
  );
}

/** A value of a property: texts as they are, all else as JSON. */
export function Value({ of }: { readonly of: unknown }): VNode {
  if (of === undefined || of === null) return <span class="faint">–</span>;
  if (of === '') return <span class="faint">empty</span>;
  return <VisibleText text={typeof of === 'string' ? of : JSON.stringify(of)} />;
}
