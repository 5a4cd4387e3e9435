import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { ReplacementPreview } from '../../../../api/reject.ts';
import { post } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { jobPath } from '../../lib/jobs.ts';
import { FilterSelect, InputField } from '../../ui/controls.tsx';
import { ConfirmButton } from '../../ui/dialog.tsx';
import { Change } from './causes.tsx';

interface Props {
  readonly jobId: string;
  /** Empty for any cause. */
  readonly cause: string;
  readonly columns: readonly string[];
  /** The number of refused records of the job, or of the cause, on all pages. */
  readonly total: number;
  readonly onChange: () => void;
}

/** The server takes no longer text. */
const longestText = 256;

/** Replaces one text by another in one column of all refused records, after the server has counted them. */
export function Replace({ jobId, cause, columns, total, onChange }: Props): VNode {
  const [column, setColumn] = useState(columns[0] ?? '');
  const [find, setFind] = useState('');
  const [by, setBy] = useState('');
  const counted = useRef<ReplacementPreview | null>(null);
  const path = jobPath(jobId);
  const body = { column, find, by, ...(cause === '' ? {} : { cause }) };
  const isCut = (): boolean => counted.current?.is_complete === false;
  const recordsOf = (number: number): string => `${isCut() ? 'at least ' : ''}${plural(number, 'record')}`;
  return (
    <div class="row filters line">
      <FilterSelect
        label="Replace in"
        value={column}
        options={columns.map((name) => [name, name])}
        onChange={setColumn}
      />
      <InputField
        label="Find"
        class=""
        value={find}
        placeholder="empty cells"
        maxLength={longestText}
        onInput={setFind}
      />
      <InputField
        label="Replace with"
        class=""
        value={by}
        placeholder="nothing"
        maxLength={longestText}
        onInput={setBy}
      />
      <ConfirmButton
        label={`Replace in all ${formatCount(total)} …`}
        needs="import"
        disabled={find === '' && by === ''}
        title="Replace in refused records"
        count={async (signal) => {
          const url = `${path}/rejects/replacement_preview`;
          counted.current = await post<ReplacementPreview>(url, body, signal);
          return counted.current.records;
        }}
        sentence={(number) => (
          <>
            Of {formatCount(total)}, {recordsOf(number)} would be changed and loaded. Records that are wrong
            for another reason stay refused.{' '}
            {counted.current?.samples[0] === undefined ? null : (
              <span class="mono break">
                <Change of={counted.current.samples[0]} />
              </span>
            )}
          </>
        )}
        verb={(number) => `Replace in ${recordsOf(number)}`}
        // The time to count may be over before the first match is met.
        mayBeNone={isCut}
        act={async () => {
          await post(`${path}/amend`, { apply: counted.current?.id ?? '' });
          onChange();
        }}
      />
      <span class="hint">{'{row}'} becomes the number of the record.</span>
    </div>
  );
}
