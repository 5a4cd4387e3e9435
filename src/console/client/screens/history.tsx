import { Fragment, type VNode } from 'preact';
import type { ProfileChange, ProfileHistory } from '../../../api/profile.ts';
import { useApi, useQuery, withQuery } from '../lib/api.ts';
import { formatCount, shorten, valueText, visibleText } from '../lib/format.ts';
import { jobHref, jobTypeNames, type Profile } from '../lib/jobs.ts';
import { Empty, type Fact, Facts, Loaded, Section, Time, Whole } from '../ui/page.tsx';

const makers = {
  load: 'a load that is no longer kept',
  request: 'a request',
  operator: 'an operator',
  deletion: 'a deletion',
} as const;

/** Shows who changed the profile at this path of the API, when, and the profile before each change. */
export function History({ of }: { readonly of: string }): VNode {
  const query = useQuery();
  const cursor = query.get('older');
  const path = withQuery(`${of}/history`, { limit: 20, cursor });
  const history = useApi<ProfileHistory>(path);
  const none = <Empty title="No changes are recorded" />;
  return (
    <Section title="History" flush>
      <Loaded of={history} rows={3} none={none}>
        {({ data, metadata: { cursor: next, kept_since: since } }) => (
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
                Changes before <Time at={since} /> are not kept.
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

/** Returns properties that callers have named as facts. */
export function propertyFacts(of: Profile['metadata']): readonly Fact[] {
  return Object.entries(of).map(([name, value]) => [
    <bdi key={name}>{visibleText(name)}</bdi>,
    <Whole key={name} of={value} />,
  ]);
}

const mostShown = 3;
const mostCharacters = 24;

const cut = (value: unknown): VNode => <bdi>{visibleText(shorten(valueText(value), mostCharacters))}</bdi>;

function Change({ of: { at, action, by, job, before } }: { readonly of: ProfileChange }): VNode {
  const properties = Object.entries(before?.metadata ?? {});
  const rest = properties.length - mostShown;
  const facts: readonly Fact[] = [
    ...propertyFacts(before?.metadata ?? {}),
    ['Company', before?.company_id != null && <Whole of={before.company_id} />],
    [
      job === null ? '' : (jobTypeNames[job.type] ?? job.type),
      job && <a href={jobHref(job.job_id)}>{visibleText(job.filename)}</a>,
    ],
  ];
  return (
    <details>
      <summary class="row spread">
        <span class="break">
          {action} by {job === null ? makers[by] : visibleText(job.filename)}{' '}
          <span class="faint">
            {before === null ? '' : 'before: '}
            {properties.slice(0, mostShown).map(([name, value], place) => (
              <Fragment key={name}>
                {place === 0 ? '' : ', '}
                {cut(name)} {cut(value)}
              </Fragment>
            ))}
            {rest > 0 ? ` and ${formatCount(rest)} more` : ''}
          </span>
        </span>
        <Time at={at} />
      </summary>
      <Facts of={facts} />
    </details>
  );
}
