import { Fragment, type VNode } from 'preact';
import type { ProfileChange, ProfileHistory } from '../../../api/profile.ts';
import { useApi, useQuery, withQuery } from '../lib/api.ts';
import { formatCount, shorten, valueText, visibleText } from '../lib/format.ts';
import { jobHref, jobTypeNames } from '../lib/jobs.ts';
import { Empty, type Fact, Facts, Loaded, Section, Time, Whole } from '../ui/page.tsx';

const makers = {
  load: 'a load that is no longer kept',
  request: 'a request',
  operator: 'an operator',
  deletion: 'a deletion',
} as const;

/** Shows who changed the profile at this path of the API, when, and from what to what. */
export function History({ of }: { readonly of: string }): VNode {
  const query = useQuery();
  const cursor = query.get('older');
  const path = withQuery(`${of}/history`, { limit: 20, cursor });
  const history = useApi<ProfileHistory>(path);
  const none = <Empty title="No changes are recorded" />;
  return (
    <Section title="History" flush>
      <Loaded of={history} rows={3} none={none}>
        {({ data, metadata: { cursor: next, complete_since: since } }) => (
          <>
            {data.length === 0 ? none : null}
            <ol class="events">
              {data.map((change, at) => (
                <li key={`${cursor} ${at}`}>
                  <Change of={change} />
                </li>
              ))}
            </ol>
            {next.after === null && since !== null ? (
              <p class="line muted">
                Changes before <Time at={since} /> are no longer kept.
              </p>
            ) : null}
            {next.after === null && cursor === '' ? null : (
              <nav class="row pager" aria-label="Pages of changes">
                <a class="button push" href={query.href({ older: next.after ?? undefined })}>
                  {next.after === null ? 'Newest changes' : 'Older changes'}
                </a>
              </nav>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

const mostSteps = 3;
const mostCharacters = 24;

const cut = (value: unknown): VNode => (
  <bdi>{value === null ? '–' : visibleText(shorten(valueText(value), mostCharacters))}</bdi>
);

function Change({ of: { at, action, by, job, properties, company } }: { readonly of: ProfileChange }): VNode {
  const steps = [...properties, ...(company === null ? [] : [{ name: 'company', ...company }])];
  const rest = steps.length - mostSteps;
  const shown = steps.slice(0, mostSteps).map(({ name, before, after }, place) => (
    <Fragment key={place}>
      {place === 0 ? '' : ', '}
      {cut(name)} {before === null ? null : <>{cut(before)} → </>}
      {cut(after)}
    </Fragment>
  ));
  const who = job === null ? makers[by] : visibleText(job.filename);
  const facts: readonly Fact[] = [
    ...properties.map(
      ({ name, ...values }) =>
        [<bdi key={name}>{visibleText(name)}</bdi>, <Step key={name} {...values} />] as const,
    ),
    ['Company', company && <Step {...company} />],
    [
      job === null ? '' : (jobTypeNames[job.type] ?? job.type),
      job && <a href={jobHref(job.job_id)}>{visibleText(job.filename)}</a>,
    ],
  ];
  return (
    <details>
      <summary class="row spread">
        <span class="break">
          {action} by {who}{' '}
          <span class="faint">
            {shown}
            {rest > 0 ? ` and ${formatCount(rest)} more` : ''}
          </span>
        </span>
        <Time at={at} />
      </summary>
      <Facts of={facts} />
    </details>
  );
}

function Step({ before, after }: { readonly before: unknown; readonly after: unknown }): VNode {
  return (
    <>
      <Whole of={before} /> → <Whole of={after} />
    </>
  );
}
