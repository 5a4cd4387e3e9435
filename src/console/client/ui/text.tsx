import { Fragment, type VNode } from 'preact';
import { formatAgo, formatTime, splitHidden, timeZone, visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';

/** An instant in the reader's zone, or how long ago it is; the exact one and the zone are shown on hover. */
export function Time({ at, ago = false }: { readonly at: string | null; readonly ago?: boolean }): VNode {
  if (at === null) return <span class="faint">–</span>;
  const full = `${formatTime(at)} ${timeZone} · ${at}`;
  return (
    <time dateTime={at} title={full} class="num">
      {ago ? formatAgo(at) : formatTime(at)}
    </time>
  );
}

const short: Readonly<Record<string, string>> = { '\t': '\\t', '\r': '\\r', '\n': '\\n', '\0': '\\0' };

/** Returns the escape of a character: few fonts have symbols for control characters. */
function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return short[character] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A text from elsewhere, with control characters and marks that reorder text shown by name. */
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

/** The name of a file or a job. A long one breaks behind a mark, not within a word. */
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

/** A value of a property: a text as it is, anything else as JSON. */
export function Value({ of }: { readonly of: unknown }): VNode {
  if (of === undefined || of === null) return <span class="faint">–</span>;
  if (of === '') return <span class="faint">empty</span>;
  return <VisibleText text={typeof of === 'string' ? of : JSON.stringify(of)} />;
}

export function JobLink({ id }: { readonly id: string }): VNode {
  return (
    <a class="mono" href={jobHref(id)}>
      {id}
    </a>
  );
}
