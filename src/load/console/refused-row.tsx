import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { formatCount } from '../../console/client/lib/format.ts';
import { Button, named } from '../../console/client/ui/controls.tsx';
import { VisibleText } from '../../console/client/ui/page.tsx';
import type { Reject } from '../rejects/api.ts';

/**
 * Changes that a person has made to a record: the changed cells by column name, or the whole record
 * as text.
 */
type RecordEdit = ReadonlyMap<string, string> | string;

export interface Edited {
  readonly reject: Reject;
  readonly edit: RecordEdit;
}

export type Edits = ReadonlyMap<number, Edited>;

function cellsOf({ cells }: Reject, columns: readonly string[], edit?: RecordEdit): readonly string[] {
  return columns.map((name, at) => (typeof edit === 'object' ? edit.get(name) : null) ?? cells?.[at] ?? '');
}

/**
 * Returns a file of the edited records, each with the job and row of the refused record. The file
 * is CSV if `columns` is set, otherwise NDJSON.
 * @throws Error if an edited text is not a JSON object
 */
export function fileOf(jobId: string, edited: readonly Edited[], columns: readonly string[] | null): string {
  if (columns === null) return edited.map((each) => `${jsonLine(jobId, each)}\n`).join('');
  const lines = edited.map(({ reject, edit }) => [
    ...cellsOf(reject, columns, edit),
    jobId,
    String(reject.row),
  ]);
  return [[...columns, 'sluice_job', 'sluice_row'], ...lines]
    .map((cells) => `${cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')}\n`)
    .join('');
}

function jsonLine(jobId: string, { reject, edit }: Edited): string {
  const text = (typeof edit === 'string' ? edit : reject.raw).trim();
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    throw new Error(`Row ${reject.row} is not JSON.`);
  }
  if (typeof record !== 'object' || record === null || Array.isArray(record))
    throw new Error(`Row ${reject.row} is not a JSON object.`);
  // Keeps the text of the record as it is, because a parsed number with many digits would be
  // rounded.
  const comma = Object.keys(record).length === 0 ? '' : ',';
  const origin = JSON.stringify({ sluice_job: jobId, sluice_row: reject.row }).slice(1);
  return `${text.slice(0, -1).replaceAll(/[\r\n]+/g, ' ')}${comma}${origin}`;
}

interface Props {
  readonly reject: Reject;
  readonly columns: readonly string[] | null;
  readonly edit: RecordEdit | undefined;
  /** Reason why a load would refuse the edited record. `null` if no reason is known. */
  readonly problem: string | null;
  /** True if the edits have been sent. The row then shows the original record. */
  readonly isSent: boolean;
  readonly onChange: (edit: RecordEdit | null) => void;
}

/** Shows a refused record and marks the cell at fault. All cells can be edited. */
export function Row(props: Props): VNode {
  const { reject, columns, edit, problem, isSent } = props;
  const [isRawShown, showRaw] = useState(columns !== null && (reject.cells?.length ?? 0) !== columns.length);
  const { row, message } = reject;
  return (
    <>
      <tr data-edited={edit === undefined ? undefined : ''} data-again={problem === null ? undefined : ''}>
        <td class="num">{formatCount(row)}</td>
        {columns !== null ? (
          <Cells {...props} columns={columns} />
        ) : (
          <td>
            <Whole {...props} />
          </td>
        )}
        <td class="muted small reason">
          {problem === null ? null : <strong class="bad">Still refused: {problem} </strong>}
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

function Cells({
  reject,
  columns,
  edit,
  isSent,
  onChange,
}: Props & { readonly columns: readonly string[] }): VNode {
  const originalCells = cellsOf(reject, columns);
  const cells = cellsOf(reject, columns, edit);
  return (
    <>
      {columns.map((name, at) => {
        const text = cells[at] ?? '';
        const original = originalCells[at] ?? '';
        const isFault = name === reject.column && text === original;
        const set = (input: string): void => {
          const next = new Map(typeof edit === 'object' ? edit : []);
          const value = typed(input, original);
          if (value === original) next.delete(name);
          else next.set(name, value);
          onChange(next.size === 0 ? null : next);
        };
        const common = { 'aria-label': `${name}, row ${reject.row}`, 'aria-invalid': isFault, value: text };
        const rest = { readOnly: isSent, spellcheck: false, autocomplete: 'off' } as const;
        return (
          <td key={`${at} ${name}`} class="cell" data-changed={text === original ? undefined : ''}>
            {/[\r\n]/.test(original) ? (
              // This text has line breaks, which an `input` element would remove.
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

/**
 * Returns the typed text with the original record's line breaks. A browser converts each line break
 * to LF.
 */
function typed(text: string, original: string): string {
  return original.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text;
}

const charactersPerLine = 90;

function Whole({ reject, edit, isSent, onChange }: Props): VNode {
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
    </div>
  );
}
