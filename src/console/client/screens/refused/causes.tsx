import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { MendProposal, RejectCause } from '../../../../api/reject.ts';
import type { Query } from '../../lib/address.ts';
import { api, apiTotal } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import { jobPath } from '../../lib/jobs.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { VisibleText } from '../../ui/text.tsx';

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

function Title({ cause }: { readonly cause: RejectCause }): VNode {
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

function Samples({ cause }: { readonly cause: RejectCause }): VNode {
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
  readonly cause: RejectCause;
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
          <Change of={first} />
        </p>
      )}
      <Button needs="import" onClick={() => setAsked(true)}>
        Apply to {formatCount(cause.count)}
        <span class="visually-hidden"> records: {deedOf(proposal)}</span>
      </Button>
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
  const path = jobPath(job.job_id);
  return (
    <Confirm
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
        await api(`${path}/amend`, { method: 'POST', body: { apply: proposal.id } });
        onChange();
      }}
      onClose={onClose}
    />
  );
}

/** Shows a value before → after. */
export function Change({ of: { before, after } }: { readonly of: MendProposal['samples'][number] }): VNode {
  return (
    <>
      <span class="before">
        <VisibleText text={before} />
      </span>
      {' → '}
      <span class="after">{after === '' ? 'no value' : <VisibleText text={after} />}</span>
    </>
  );
}
