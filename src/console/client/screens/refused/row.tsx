import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Reject } from '../../../../api/reject.ts';
import { formatCount } from '../../lib/format.ts';
import { Button, Code, named } from '../../ui/controls.tsx';
import { VisibleText } from '../../ui/page.tsx';
import { cellsOf, hasCells, hexLines, type RecordEdit, withCell } from './reject-record.ts';

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

/** A refused record: the cell at fault is marked, and every cell can be mended. Its bytes are shown on demand. */
export function Row(props: Props): VNode {
  const { reject, columns, edit, isAgain, isSent } = props;
  const [areBytesShown, showBytes] = useState(false);
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
        <td class="reason">
          {isAgain ? <strong class="bad">Refused again: </strong> : null}
          {isSent ? <span class="warn">Sent. </span> : null}
          <VisibleText text={message} />
        </td>
        <td>
          <Button look="quiet" isExpanded={areBytesShown} onClick={() => showBytes(!areBytesShown)}>
            {named(areBytesShown ? 'Hide' : 'Show', `the bytes of row ${row}`)}
          </Button>
        </td>
      </tr>
      {areBytesShown ? (
        <tr class="bytes-row">
          <td colSpan={(columns?.length ?? 1) + 3}>
            <p class="mono break">
              <VisibleText text={reject.raw} />
            </p>
            <Code>{hexLines(reject.raw, reject.raw_base64).join('\n')}</Code>
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
        const set = (next: string): void => onChange(withCell(reject, edit, at, typed(next, before)));
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
