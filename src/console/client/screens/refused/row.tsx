import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { formatCount } from '../../lib/format.ts';
import { VisibleText } from '../../ui/visible-text.tsx';
import { cellsOf, faultOf, hexLines, type MendedRecord, type Reject } from './reject-record.ts';

interface Props {
  readonly reject: Reject;
  readonly columns: readonly string[] | null;
  /** As it was mended here; undefined: not yet. */
  readonly mended: MendedRecord | undefined;
  readonly onChange: (record: MendedRecord | null) => void;
}

/** A refused record: what is at fault is marked, and everything can be mended. Below, on demand, its bytes. */
export function Row({ reject, columns, mended, onChange }: Props): VNode {
  const [areBytesShown, showBytes] = useState(false);
  const { cells, row, message } = reject;
  const beyond = columns === null ? [] : (cells ?? []).slice(columns.length);
  return (
    <>
      <tr data-mended={mended === undefined ? undefined : ''}>
        <td class="num">{formatCount(row)}</td>
        {columns === null ? (
          <td>
            <Whole reject={reject} mended={mended} onChange={onChange} />
          </td>
        ) : (
          <Cells reject={reject} columns={columns} mended={mended} onChange={onChange} />
        )}
        <td class="reason">
          <VisibleText text={message} />
          {beyond.length === 0 ? null : (
            <span class="warn">
              {' Beyond the columns: '}
              <VisibleText text={beyond.join(' · ')} />
            </span>
          )}
        </td>
        <td>
          <button
            type="button"
            class="button button-quiet"
            aria-expanded={areBytesShown}
            onClick={() => showBytes(!areBytesShown)}
          >
            {areBytesShown ? 'Hide' : 'Show'}
            <span class="visually-hidden"> the bytes of row {row}</span>
          </button>
        </td>
      </tr>
      {areBytesShown ? (
        <tr class="bytes-row">
          <td colSpan={(columns?.length ?? 1) + 3}>
            <Bytes reject={reject} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function Cells({
  reject,
  columns,
  mended,
  onChange,
}: Props & { readonly columns: readonly string[] }): VNode {
  const own = cellsOf(reject, columns);
  const cells = typeof mended === 'object' ? mended : own;
  const fault = faultOf(reject, columns);
  const set = (at: number, text: string): void => {
    const next = cells.with(at, text);
    // Of a record whose cells were not told, or too many, what is shown is a change already.
    const isAsBefore = next.every((each, index) => each === own[index]);
    onChange(isAsBefore ? null : next);
  };
  return (
    <>
      {columns.map((name, at) => {
        const isChanged = cells[at] !== own[at];
        return (
          <td
            key={`${at} ${name}`}
            class="cell"
            data-fault={at === fault && !isChanged ? '' : undefined}
            data-changed={isChanged ? '' : undefined}
          >
            <input
              type="text"
              aria-label={`${name}, row ${reject.row}`}
              aria-invalid={at === fault && !isChanged}
              value={cells[at] ?? ''}
              size={Math.min(24, Math.max(8, (cells[at] ?? '').length + 1))}
              spellcheck={false}
              autocomplete="off"
              onInput={(event) => set(at, event.currentTarget.value)}
            />
          </td>
        );
      })}
    </>
  );
}

/** A record that is no CSV is mended as its text. */
function Whole({ reject, mended, onChange }: Omit<Props, 'columns'>): VNode {
  const text = typeof mended === 'string' ? mended : reject.raw;
  return (
    <textarea
      class="mono"
      rows={Math.min(6, Math.max(1, Math.ceil(text.length / 90)))}
      aria-label={`Record, row ${reject.row}`}
      value={text}
      spellcheck={false}
      onInput={(event) => {
        const { value } = event.currentTarget;
        onChange(value === reject.raw ? null : value);
      }}
    />
  );
}

function Bytes({ reject }: { readonly reject: Reject }): VNode {
  return (
    <>
      <p class="mono break">
        <VisibleText text={reject.raw} />
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too */}
      <pre class="code" tabIndex={0}>
        {hexLines(reject.raw, reject.raw_base64).join('\n')}
      </pre>
    </>
  );
}
