import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Reject, ReplacementPreview } from '../../../../api/reject.ts';
import { api } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { jobPath } from '../../lib/jobs.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { Change } from './causes.tsx';
import { type Edits, type Replacement, replaceIn } from './reject-record.ts';

interface Props {
  readonly rejects: readonly Reject[];
  readonly columns: readonly string[];
  readonly edits: Edits;
  readonly onChange: (edits: Edits) => void;
  readonly all: AllRecords;
}

/** The refused records of the job, or of the chosen cause, on all pages. */
interface AllRecords {
  readonly jobId: string;
  /** Empty for any cause. */
  readonly cause: string;
  readonly total: number;
  readonly onChange: () => void;
}

/** Replaces one text by another in one column: in the shown records, to be looked at and sent, or on the server in all. */
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
      <Button type="submit" disabled={count === 0}>
        Replace in {plural(count, 'record')}
      </Button>
      {isMore ? (
        <Button needs="import" disabled={find === '' && by === ''} onClick={() => setAsked(true)}>
          Replace in all {formatCount(all.total)} …
        </Button>
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

interface ReplaceAllProps {
  readonly wish: Replacement;
  readonly columns: readonly string[];
  readonly all: AllRecords;
  readonly onClose: () => void;
}

/** Replaces in the records of all pages, after the server has counted them. */
function ReplaceAll({ wish, columns, all, onClose }: ReplaceAllProps): VNode {
  const counted = useRef<ReplacementPreview | null>(null);
  const path = jobPath(all.jobId);
  const { column, find, by } = wish;
  const body = { column: columns[column] ?? '', find, by, ...(all.cause === '' ? {} : { cause: all.cause }) };
  const isCut = (): boolean => counted.current?.is_complete === false;
  const recordsOf = (number: number): string => `${isCut() ? 'at least ' : ''}${plural(number, 'record')}`;
  return (
    <Confirm
      title="Replace in refused records"
      count={async (signal) => {
        const url = `${path}/rejects/replacement_preview`;
        counted.current = await api<ReplacementPreview>(url, { method: 'POST', body, signal });
        return counted.current.records;
      }}
      sentence={(number) => (
        <>
          Of {formatCount(all.total)}, {recordsOf(number)} would be changed and loaded. Records that are wrong
          for another reason stay refused.{' '}
          {counted.current?.samples[0] === undefined ? null : (
            <span class="mono proposal-sample">
              <Change of={counted.current.samples[0]} />
            </span>
          )}
        </>
      )}
      verb={(number) => `Replace in ${recordsOf(number)}`}
      // The time to count may be over before the first match is met.
      mayBeNone={isCut}
      act={async () => {
        await api(`${path}/amend`, { method: 'POST', body: { apply: counted.current?.id ?? '' } });
        all.onChange();
      }}
      onClose={onClose}
    />
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

/** The server takes no longer text. */
const longestText = 256;
