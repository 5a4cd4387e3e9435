import type { VNode } from 'preact';
import { withQuery } from '../../console/client/lib/address.ts';
import { useApi } from '../../console/client/lib/data.ts';
import { formatCount, formatShare } from '../../console/client/lib/format.ts';
import { jobPath, type LoadJob } from '../../console/client/lib/jobs.ts';
import { named } from '../../console/client/ui/controls.tsx';
import { Loaded, Section, VisibleText } from '../../console/client/ui/page.tsx';
import type { RejectCause } from '../rejects/api.ts';

interface CausesProps {
  readonly job: Pick<LoadJob, 'job_id' | 'rejects'>;
  readonly title: string;
  readonly aside: VNode;
  readonly chosen?: string;
  readonly hrefOf: (id: string) => string;
}

export function Causes({ job, title, aside, chosen = '', hrefOf }: CausesProps): VNode {
  const { count } = job.rejects;
  const causes = useApi<{ readonly data: readonly RejectCause[] }>(
    withQuery(`${jobPath(job.job_id)}/rejects`, { group_by: 'cause' }),
    undefined,
    `${count}`,
  );
  return (
    <Section title={title} aside={aside} flush>
      <Loaded of={causes} rows={3}>
        {({ data }) => (
          <ol>
            {data.map((cause) => (
              <li key={cause.id} class="cause" data-selected={cause.id === chosen ? '' : undefined}>
                <p>
                  <strong class="num">{formatCount(cause.count)}</strong>{' '}
                  <span class="hint">{formatShare(cause.count, count)}</span>
                </p>
                <Description href={hrefOf(cause.id)} cause={cause} isChosen={cause.id === chosen} />
              </li>
            ))}
          </ol>
        )}
      </Loaded>
    </Section>
  );
}

const shownSamples = 3;

interface DescriptionProps {
  readonly href: string;
  readonly cause: RejectCause;
  readonly isChosen: boolean;
}

function Description({ href, cause, isChosen }: DescriptionProps): VNode {
  const { error_code, column, shape, samples } = cause;
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
      <a class="small cause-show" href={href}>
        {named(
          isChosen ? 'Show all records' : 'Show these records',
          `: ${error_code} in ${column ?? 'the record'}`,
        )}
      </a>
    </div>
  );
}
