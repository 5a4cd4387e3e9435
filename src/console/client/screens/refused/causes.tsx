import type { VNode } from 'preact';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { MendProposal, RejectCause } from '../../../../api/reject.ts';
import { apiTotal, post, type Query } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import { jobPath } from '../../lib/jobs.ts';
import { named } from '../../ui/controls.tsx';
import { ConfirmButton } from '../../ui/dialog.tsx';
import { Badge, VisibleText } from '../../ui/page.tsx';

interface Props {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly causes: readonly RejectCause[];
  readonly onChange: () => void;
}

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
      <a class="cause-show" href={query.href({ cause: isChosen ? undefined : id, cursor: undefined })}>
        {named(
          isChosen ? 'Show all records' : 'Show these records',
          `: ${error_code} in ${column ?? 'the record'}`,
        )}
      </a>
    </div>
  );
}

/** Returns the sentence of a proposal without its count and shape, which stand beside it. */
function deedOf({ sentence }: MendProposal): string {
  return sentence.replace(/^\d[\d ]* × .*?: (?=[^:]*$)/s, '');
}

interface ProposedProps {
  readonly job: LoadDetail;
  readonly cause: RejectCause;
  readonly proposal: MendProposal;
  readonly onChange: () => void;
}

/** Shows what a mend does, before → after. It is applied to all records of the cause at once. */
function Proposed({ job, cause, proposal, onChange }: ProposedProps): VNode {
  const [first] = proposal.samples;
  const path = jobPath(job.job_id);
  return (
    <li class="two-lines proposal">
      <p class="row">
        <VisibleText text={deedOf(proposal)} />
        {proposal.ambiguous ? <Badge tone="warn">a guess</Badge> : null}
      </p>
      {first === undefined ? null : (
        <p class="mono break">
          <Change of={first} />
        </p>
      )}
      <ConfirmButton
        label={named(`Apply to ${formatCount(cause.count)}`, `records: ${deedOf(proposal)}`)}
        needs="import"
        title="Mend refused records"
        count={(signal) => apiTotal(`${path}/rejects`, { cause: cause.id }, signal)}
        sentence={(number) => (
          <>
            {plural(number, 'record')}: <VisibleText text={deedOf(proposal)} />. Tried on{' '}
            {formatCount(proposal.tried)}; a load would take {formatCount(proposal.accepted)} of them. Later
            changes win over mended records. What it cannot mend stays refused.
          </>
        )}
        verb={(number) => `Mend ${plural(number, 'record')}`}
        act={async () => {
          await post(`${path}/amend`, { apply: proposal.id });
          onChange();
        }}
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
