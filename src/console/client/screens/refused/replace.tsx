import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { api, mayUse } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { VisibleText } from '../../ui/visible-text.tsx';
import { type Edits, type Reject, type Replacement, replaceIn } from './reject-record.ts';

interface Props {
  readonly rejects: readonly Reject[];
  readonly columns: readonly string[];
  readonly edits: Edits;
  readonly onChange: (edits: Edits) => void;
  readonly all: AllRecords;
}

/** The refused records of the job, or of the cause that is chosen: those on other pages too. */
interface AllRecords {
  readonly jobId: string;
  /** Empty: of any cause. */
  readonly cause: string;
  readonly total: number;
  readonly onChange: () => void;
}

/** One text by another, in one column: in the records that are shown, to be looked at and sent; or by the server, in all. */
export function Replace({ rejects, columns, edits, onChange, all }: Props): VNode {
  const [column, setColumn] = useState(0);
  const [find, setFind] = useState('');
  const [by, setBy] = useState('');
  const [isAsked, setAsked] = useState(false);
  const wish = { column, find, by };
  const next = replaceIn(rejects, columns, edits, wish);
  const count = rejects.filter(({ row }) => next.get(row) !== edits.get(row)).length;
  const isMore = all.total > rejects.length;
  return (
    <form
      class="filters replace"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(next);
      }}
    >
      <label class="filter">
        <span class="field-label">Replace in</span>
        <select value={column} onChange={(event) => setColumn(Number(event.currentTarget.value))}>
          {columns.map((name, at) => (
            <option key={`${at} ${name}`} value={at}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Text label="Find" value={find} placeholder="empty cells" onInput={setFind} />
      <Text label="Replace with" value={by} placeholder="nothing" onInput={setBy} />
      <button type="submit" class="button" disabled={count === 0}>
        Replace in {plural(count, 'record')}
      </button>
      {isMore ? (
        <button
          type="button"
          class="button"
          disabled={(find === '' && by === '') || !mayUse('import')}
          onClick={() => setAsked(true)}
        >
          Replace in all {formatCount(all.total)} …
        </button>
      ) : null}
      <span class="hint">
        {isMore ? `The first button changes the ${formatCount(rejects.length)} shown. ` : ''}
        {'{row}'} becomes the number of the record.
      </span>
      {isAsked ? (
        <ReplaceAll wish={wish} columns={columns} all={all} onClose={() => setAsked(false)} />
      ) : null}
    </form>
  );
}

interface Counted {
  readonly id: string;
  readonly records: number;
  readonly is_complete: boolean;
  readonly samples: readonly { readonly row: number; readonly before: string; readonly after: string }[];
}

interface ReplaceAllProps {
  readonly wish: Replacement;
  readonly columns: readonly string[];
  readonly all: AllRecords;
  readonly onClose: () => void;
}

/** The server says in how many records it would be, of all pages, and then does it. */
function ReplaceAll({ wish, columns, all, onClose }: ReplaceAllProps): VNode {
  const counted = useRef<Counted | null>(null);
  const path = `/v1/background_jobs/${all.jobId}`;
  const { find, by } = wish;
  const body = {
    column: columns[wish.column] ?? '',
    find,
    by,
    ...(all.cause === '' ? {} : { cause: all.cause }),
  };
  const count = async (signal: AbortSignal): Promise<number> => {
    const found = await api<Counted>(`${path}/rejects/replacement_preview`, { method: 'POST', body, signal });
    counted.current = found;
    return found.records;
  };
  const act = async (): Promise<void> => {
    await api(`${path}/amend`, { method: 'POST', body: { apply: counted.current?.id ?? '' } });
    all.onChange();
  };
  const recordsOf = (number: number): string =>
    `${counted.current?.is_complete === false ? 'at least ' : ''}${plural(number, 'record')}`;
  return (
    <Confirm
      title="Replace in refused records"
      count={count}
      sentence={(number) => (
        <>
          Of {formatCount(all.total)}, {recordsOf(number)} would be changed and loaded, at their place in the
          file. What is wrong for another reason stays refused.
          <Sample of={counted.current?.samples[0]} />
        </>
      )}
      verb={(number) => `Replace in ${recordsOf(number)}`}
      // The time to count may be over before the first one is met.
      mayBeNone={() => counted.current?.is_complete === false}
      act={act}
      onClose={onClose}
    />
  );
}

function Sample({ of: sample }: { readonly of: Counted['samples'][number] | undefined }): VNode | null {
  if (sample === undefined) return null;
  return (
    <span class="mono proposal-sample">
      {' '}
      <span class="before">
        <VisibleText text={sample.before} />
      </span>
      {' → '}
      <span class="after">
        <VisibleText text={sample.after} />
      </span>
    </span>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  readonly onInput: (value: string) => void;
}

function Text({ label, value, placeholder, onInput }: TextProps): VNode {
  return (
    <label class="filter">
      <span class="field-label">{label}</span>
      <input
        type="text"
        value={value}
        placeholder={placeholder}
        maxLength={longestText}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}

/** That of the server. */
const longestText = 256;
