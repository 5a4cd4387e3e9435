import type { VNode } from 'preact';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { RejectCause } from '../../../../api/reject.ts';
import type { Query } from '../../lib/api.ts';
import { formatCount, formatShare } from '../../lib/format.ts';
import { named } from '../../ui/controls.tsx';
import { VisibleText } from '../../ui/page.tsx';

/** Each part of the page of refused records, with what it calls after a change. */
export interface RefusedProps {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly onChange: () => void;
}

type Props = Omit<RefusedProps, 'onChange'> & { readonly causes: readonly RejectCause[] };

/** Lists the causes, the most frequent first: how many records, and examples. */
export function Causes({ query, job, causes }: Props): VNode {
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
