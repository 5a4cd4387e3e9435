import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { MendProposal, RejectCause, ReplacementPreview } from '../../../../api/reject.ts';
import { apiTotal, post, type Query } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import { jobPath } from '../../lib/jobs.ts';
import { InputField, named, SelectField } from '../../ui/controls.tsx';
import { ConfirmButton, type ConfirmButtonProps } from '../../ui/dialog.tsx';
import { Badge, VisibleText } from '../../ui/page.tsx';

/** Each part of the page of refused records, with what it calls after a change. */
export interface RefusedProps {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly onChange: () => void;
}

type Props = RefusedProps & { readonly causes: readonly RejectCause[] };

/** Lists the causes, the most frequent first: how many records, examples, and what would mend them. */
export function Causes({ query, job, causes, onChange }: Props): VNode {
  const chosen = query.get('cause');
  return (
    <ol>
      {causes.map((cause) => (
        <li key={cause.id} class="cause" data-selected={cause.id === chosen ? '' : undefined}>
          <p>
            <strong class="num">{formatCount(cause.count)}</strong>{' '}
            <span class="hint">{formatShare(cause.count, job.counts.rejected)}</span>
          </p>
          <Description query={query} cause={cause} isChosen={cause.id === chosen} />
          <ul class="stack">
            {cause.proposals.map((proposal) => (
              <Proposed key={proposal.id} job={job} cause={cause} proposal={proposal} onChange={onChange} />
            ))}
            {cause.proposals.length === 0 ? (
              <li class="hint">No mend is known for these. Mend them in the list below.</li>
            ) : null}
          </ul>
        </li>
      ))}
    </ol>
  );
}

const shownSamples = 3;

interface DescriptionProps {
  readonly query: Query;
  readonly cause: RejectCause;
  readonly isChosen: boolean;
}

function Description({ query, cause, isChosen }: DescriptionProps): VNode {
  const { id, error_code, column, shape, samples } = cause;
  return (
    <div class="two-lines">
      <p class="row break">
        <strong>{error_code.replaceAll('_', ' ')}</strong>
        {column === null ? null : (
          <span>
            <span class="muted">in</span> <VisibleText text={column} />
          </span>
        )}
        {shape === null ? null : (
          <code class="cause-shape">
            <VisibleText text={shape} />
          </code>
        )}
      </p>
      <ul class="hint">
        {samples.slice(0, shownSamples).map(({ row, value, raw }) => (
          <li key={row} class="mono cut">
            <VisibleText text={value || raw} />
          </li>
        ))}
      </ul>
      <a class="small cause-show" href={query.href({ cause: isChosen ? undefined : id, cursor: undefined })}>
        {named(
          isChosen ? 'Show all records' : 'Show these records',
          `: ${error_code} in ${column ?? 'the record'}`,
        )}
      </a>
    </div>
  );
}

interface MendProps
  extends Pick<ConfirmButtonProps, 'label' | 'disabled' | 'title' | 'sentence' | 'verb' | 'mayBeNone'> {
  readonly job: LoadDetail;
  readonly count: (signal: AbortSignal) => Promise<number>;
  /** Returns the id of the mend, once it is counted. */
  readonly id: () => string;
  readonly onChange: () => void;
}

/** Applies a mend once the server has counted its records. */
function MendButton({ job, id, onChange, ...confirm }: MendProps): VNode {
  return (
    <ConfirmButton
      {...confirm}
      needs="import"
      act={async () => {
        await post(`${jobPath(job.job_id)}/amend`, { apply: id() });
        onChange();
      }}
    />
  );
}

interface ProposedProps extends Omit<RefusedProps, 'query'> {
  readonly cause: RejectCause;
  readonly proposal: MendProposal;
}

/** Shows what a mend does, before → after. It is applied to all records of the cause at once. */
function Proposed({ job, cause, proposal, onChange }: ProposedProps): VNode {
  const { id, sentence, tried, accepted, ambiguous } = proposal;
  const [first] = proposal.samples;
  return (
    <li class="two-lines proposal">
      <p class="row">
        <VisibleText text={sentence} />
        {accepted === tried ? null : (
          <span class="hint">{`helps ${formatCount(accepted)} of ${formatCount(tried)} tried`}</span>
        )}
        {ambiguous ? <Badge tone="warn">a guess</Badge> : null}
      </p>
      {first === undefined ? null : (
        <p class="mono break">
          <Change of={first} />
        </p>
      )}
      <MendButton
        job={job}
        label={named(`Apply to ${formatCount(cause.count)}`, `records: ${sentence}`)}
        title="Mend refused records"
        count={(signal) => apiTotal(`${jobPath(job.job_id)}/rejects`, { cause: cause.id }, signal)}
        sentence={(number) =>
          `${plural(number, 'record')}: ${sentence}. Tried on ${formatCount(tried)}; a load would take ${formatCount(accepted)} of them. Later changes win over mended records. What it cannot mend stays refused.`
        }
        verb={(number) => `Mend ${plural(number, 'record')}`}
        id={() => id}
        onChange={onChange}
      />
    </li>
  );
}

/** Shows a value before → after. */
export function Change({ of: { before, after } }: { readonly of: MendProposal['samples'][number] }): VNode {
  return (
    <>
      <span class="bad">
        <VisibleText text={before} />
      </span>
      {' → '}
      <span class="good">{after === '' ? 'no value' : <VisibleText text={after} />}</span>
    </>
  );
}

interface ReplaceProps extends Omit<RefusedProps, 'query'> {
  /** Empty for any cause. */
  readonly cause: string;
  readonly columns: readonly string[];
  /** The column at fault in the first of them, if it is one. */
  readonly fault: string | null;
  /** The number of refused records of the job, or of the cause, on all pages. */
  readonly total: number;
}

/** The server takes no longer text. */
const longestText = 256;

/** Replaces one text by another in one column of all refused records, after the server has counted them. */
export function Replace({ job, cause, columns, fault, total, onChange }: ReplaceProps): VNode {
  const [chosen, setColumn] = useState<string | null>(null);
  const column = [chosen, fault].find((name) => columns.includes(name ?? '')) ?? columns[0] ?? '';
  const [find, setFind] = useState('');
  const [by, setBy] = useState('');
  const counted = useRef<ReplacementPreview | null>(null);
  // From then on the column stays, whichever record comes first.
  const typed = (put: (text: string) => void) => (text: string) => {
    setColumn(column);
    put(text);
  };
  const body = { column, find, by, ...(cause === '' ? {} : { cause }) };
  const isCut = (): boolean => counted.current?.is_complete === false;
  const recordsOf = (number: number): string => `${isCut() ? 'at least ' : ''}${plural(number, 'record')}`;
  return (
    <div class="row filters line">
      <SelectField
        label="Replace in"
        value={column}
        options={columns.map((name) => [name, name])}
        onChange={setColumn}
      />
      <InputField
        label="Find"
        value={find}
        placeholder="empty cells"
        maxLength={longestText}
        onInput={typed(setFind)}
      />
      <InputField
        label="Replace with"
        value={by}
        placeholder="nothing"
        maxLength={longestText}
        onInput={typed(setBy)}
      />
      <MendButton
        job={job}
        label={`Replace in all ${formatCount(total)} …`}
        disabled={find === '' && by === ''}
        title="Replace in refused records"
        count={async (signal) => {
          const url = `${jobPath(job.job_id)}/rejects/replacement_preview`;
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
        id={() => counted.current?.id ?? ''}
        onChange={onChange}
      />
      <span class="hint">{'{row}'} becomes the number of the record.</span>
    </div>
  );
}
