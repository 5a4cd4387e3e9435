import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Reject } from '../../../../api/reject.ts';
import { formatCount } from '../../lib/format.ts';
import { Button, named } from '../../ui/controls.tsx';
import { VisibleText } from '../../ui/page.tsx';

/** The cells of a record that were edited, by column name; or the text of the record. */
export type RecordEdit = ReadonlyMap<string, string> | string;

/** The edits that have not been sent yet, by row. */
export type Edits = ReadonlyMap<number, RecordEdit>;

/** Tells whether each cell of the record has a column to be edited in. If not, the record is edited as text. */
function hasCells({ cells }: Reject, columns: readonly string[] | null): boolean {
  return columns !== null && cells !== null && cells.length <= columns.length;
}

function cellsOf({ cells }: Reject, columns: readonly string[], edit?: RecordEdit): readonly string[] {
  return columns.map((name, at) => (typeof edit === 'object' ? edit.get(name) : null) ?? cells?.[at] ?? '');
}

/** Returns the edits as the API takes them: cells that were not touched are not sent. */
export function bodyOf(edits: Edits): unknown {
  const records = [...edits].map(([row, edit]) =>
    typeof edit === 'string' ? { row, raw: edit } : { row, values: Object.fromEntries(edit) },
  );
  return { records };
}

/** Drops the edits of rows that have left this page. Edits of other pages are kept. */
export function stillRefused(edits: Edits, shown: readonly Reject[]): Edits {
  const rows = new Set(shown.map(({ row }) => row));
  const [first = Number.POSITIVE_INFINITY, last = 0] = [shown[0]?.row, shown.at(-1)?.row];
  return new Map([...edits].filter(([row]) => rows.has(row) || row < first || row > last));
}

interface Props {
  readonly reject: Reject;
  readonly columns: readonly string[] | null;
  /** The edit made here, if any. */
  readonly edit: RecordEdit | undefined;
  readonly isAgain: boolean;
  /** The record was sent and is not answered yet: it cannot be edited. */
  readonly isSent: boolean;
  readonly onChange: (edit: RecordEdit | null) => void;
}

/** A refused record: the cell at fault is marked, and every cell can be mended. What the file has is shown on demand. */
export function Row(props: Props): VNode {
  const { reject, columns, edit, isAgain, isSent } = props;
  const [isRawShown, showRaw] = useState(false);
  const { row, message } = reject;
  return (
    <>
      <tr data-mended={edit === undefined ? undefined : ''} data-again={isAgain ? '' : undefined}>
        <td class="num">{formatCount(row)}</td>
        {columns !== null && hasCells(reject, columns) ? (
          <Cells {...props} columns={columns} />
        ) : (
          <td colSpan={columns?.length ?? 1}>
            <Whole {...props} />
          </td>
        )}
        <td class="muted small reason">
          {isAgain ? <strong class="bad">Refused again: </strong> : null}
          {isSent ? <span class="warn">Sent. </span> : null}
          <VisibleText text={message} />
        </td>
        <td>
          <Button look="quiet" isExpanded={isRawShown} onClick={() => showRaw(!isRawShown)}>
            {named(isRawShown ? 'Hide' : 'Show', `row ${row} as it is written`)}
          </Button>
        </td>
      </tr>
      {isRawShown ? (
        <tr class="raw-row">
          <td colSpan={(columns?.length ?? 1) + 3}>
            <p class="mono break">
              <VisibleText text={reject.raw} />
            </p>
          </td>
        </tr>
      ) : null}
    </>
  );
}

interface CellsProps extends Props {
  readonly columns: readonly string[];
}

function Cells({ reject, columns, edit, isSent, onChange }: CellsProps): VNode {
  const own = cellsOf(reject, columns);
  const cells = cellsOf(reject, columns, edit);
  return (
    <>
      {columns.map((name, at) => {
        const text = cells[at] ?? '';
        const before = own[at] ?? '';
        const isFault = name === reject.column && text === before;
        const set = (input: string): void => {
          const next = new Map(typeof edit === 'object' ? edit : []);
          const value = typed(input, before);
          if (value === before) next.delete(name);
          else next.set(name, value);
          onChange(next.size === 0 ? null : next);
        };
        const common = { 'aria-label': `${name}, row ${reject.row}`, 'aria-invalid': isFault, value: text };
        const rest = { readOnly: isSent, spellcheck: false, autocomplete: 'off' } as const;
        return (
          <td key={`${at} ${name}`} class="cell" data-changed={text === before ? undefined : ''}>
            {/[\r\n]/.test(before) ? (
              // An input would drop the line breaks.
              <textarea {...common} {...rest} rows={1} onInput={(event) => set(event.currentTarget.value)} />
            ) : (
              <input
                {...common}
                {...rest}
                size={Math.min(24, Math.max(8, text.length + 1))}
                onInput={(event) => set(event.currentTarget.value)}
              />
            )}
          </td>
        );
      })}
    </>
  );
}

/** Returns what was typed with the line breaks of the record: a browser turns each into LF. */
function typed(text: string, own: string): string {
  return own.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text;
}

const charactersPerLine = 90;

/** A record of JSON, or one of CSV whose cells have no columns of their own, is edited as its text. */
function Whole({ reject, columns, edit, isSent, onChange }: Props): VNode {
  const text = typeof edit === 'string' ? edit : reject.raw;
  const lines = text.split('\n').length + Math.floor(text.length / charactersPerLine);
  return (
    <div class="whole" data-changed={edit === undefined ? undefined : ''}>
      <textarea
        class="mono"
        rows={Math.min(6, lines)}
        aria-label={`Record, row ${reject.row}`}
        value={text}
        readOnly={isSent}
        spellcheck={false}
        onInput={(event) => {
          const next = typed(event.currentTarget.value, reject.raw);
          onChange(next === reject.raw ? null : next);
        }}
      />
      {columns === null ? null : (
        <span class="hint">
          {reject.cells === null
            ? 'The record as it is written: its cells cannot be told apart.'
            : `The record as it is written: ${reject.cells.length} cells for ${columns.length} columns.`}
        </span>
      )}
    </div>
  );
}
