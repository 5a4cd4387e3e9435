import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, mayUse } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import type { Query } from '../../lib/use-query.ts';
import { Badge } from '../../ui/badge.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { VisibleText } from '../../ui/visible-text.tsx';
import type { LoadDetail } from '../load/load-record.ts';
import type { Cause, Proposal } from './reject-record.ts';

interface Props {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly causes: readonly Cause[];
  readonly onChange: () => void;
}

/** Causes, the most frequent first: how many, what stands there, and what would mend them. */
export function Causes({ query, job, causes, onChange }: Props): VNode {
  const chosen = query.get('cause');
  return (
    <ol class="causes">
      {causes.map((cause) => (
        <li key={cause.id} class="cause" data-selected={cause.id === chosen ? '' : undefined}>
          <p class="cause-count">
            <span class="num">{formatCount(cause.count)}</span>
            <span class="hint">{formatShare(cause.count, job.counts.rejected)}</span>
          </p>
          <div class="cause-what">
            <Title cause={cause} />
            <Samples cause={cause} />
            <Show query={query} cause={cause} isChosen={cause.id === chosen} />
          </div>
          <ul class="proposals">
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

function Title({ cause }: { readonly cause: Cause }): VNode {
  return (
    <p class="cause-title">
      <span class="cause-code">{cause.error_code.replaceAll('_', ' ')}</span>
      {cause.column === null ? null : (
        <span class="cause-column">
          <VisibleText text={cause.column} />
        </span>
      )}
      {cause.shape === null ? null : (
        <span class="cause-shape mono">
          <VisibleText text={cause.shape} />
        </span>
      )}
    </p>
  );
}

const shownSamples = 3;

function Samples({ cause }: { readonly cause: Cause }): VNode {
  return (
    <ul class="cause-samples">
      {cause.samples.slice(0, shownSamples).map(({ row, value, raw }) => (
        <li key={row} class="mono">
          <VisibleText text={value === null || value === '' ? raw : value} />
        </li>
      ))}
    </ul>
  );
}

interface ShowProps {
  readonly query: Query;
  readonly cause: Cause;
  readonly isChosen: boolean;
}

function Show({ query, cause, isChosen }: ShowProps): VNode {
  const href = query.href({ cause: isChosen ? undefined : cause.id, cursor: undefined });
  return (
    <a class="cause-show" href={href}>
      {isChosen ? 'Show all records' : 'Show these records'}
      <span class="visually-hidden">
        : {cause.error_code} in {cause.column ?? 'the record'}
      </span>
    </a>
  );
}

/** The sentence of a proposal without its count and shape, which stand beside it. */
function deedOf({ sentence }: Proposal): string {
  return sentence.replace(/^\d[\d ]* × .*?: (?=[^:]*$)/s, '');
}

interface ProposedProps {
  readonly job: LoadDetail;
  readonly cause: Cause;
  readonly proposal: Proposal;
  readonly onChange: () => void;
}

/** What the mend does, before → after; applied to all records of the cause at once. */
function Proposed({ job, cause, proposal, onChange }: ProposedProps): VNode {
  const [isAsked, setAsked] = useState(false);
  const [first] = proposal.samples;
  return (
    <li class="proposal">
      <p class="proposal-deed">
        <VisibleText text={deedOf(proposal)} />
        {proposal.ambiguous ? <Badge tone="warn">a guess</Badge> : null}
      </p>
      {first === undefined ? null : (
        <p class="mono proposal-sample">
          <span class="before">
            <VisibleText text={first.before} />
          </span>
          {' → '}
          <span class="after">{first.after === '' ? 'no value' : <VisibleText text={first.after} />}</span>
        </p>
      )}
      <button type="button" class="button" disabled={!mayUse('import')} onClick={() => setAsked(true)}>
        Apply to {formatCount(cause.count)}
        <span class="visually-hidden"> records: {deedOf(proposal)}</span>
      </button>
      {isAsked ? (
        <Apply
          job={job}
          cause={cause}
          proposal={proposal}
          onChange={onChange}
          onClose={() => setAsked(false)}
        />
      ) : null}
    </li>
  );
}

function Apply(props: ProposedProps & { readonly onClose: () => void }): VNode {
  const { job, cause, proposal, onChange, onClose } = props;
  const path = `/v1/background_jobs/${job.job_id}`;
  const count = async (signal: AbortSignal): Promise<number> => {
    const page = await api<{ readonly metadata: { readonly total_count: number } }>(
      `${path}/rejects?limit=1&cause=${cause.id}`,
      { signal },
    );
    return page.metadata.total_count;
  };
  const act = async (): Promise<void> => {
    await api(`${path}/amend`, { method: 'POST', body: { apply: proposal.id } });
    onChange();
  };
  return (
    <Confirm
      title="Mend refused records"
      count={count}
      sentence={(number) => (
        <>
          {plural(number, 'record')}: <VisibleText text={deedOf(proposal)} />. Tried on{' '}
          {formatCount(proposal.tried)}; a load would take {formatCount(proposal.accepted)} of them. Mended
          records are loaded at their place in the file. What it cannot mend stays refused.
        </>
      )}
      verb={(number) => `Mend ${plural(number, 'record')}`}
      act={act}
      onClose={onClose}
    />
  );
}
