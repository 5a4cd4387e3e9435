import type { VNode } from 'preact';
import type { ProfileChange, ProfileHistory } from '../../../profiles/api.ts';
import { jobTypeNames } from '../app/job-types.ts';
import { useQuery, withQuery } from '../lib/address.ts';
import { useApi } from '../lib/data.ts';
import { visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';
import { Pager } from '../ui/list.tsx';
import { Empty, Entry, type Fact, Loaded, Section, Time } from '../ui/page.tsx';
import { Glance, propertyFacts, Whole } from '../ui/properties.tsx';

const makers = {
  load: 'a load that is no longer kept',
  request: 'a request',
  operator: 'an operator',
  deletion: 'a deletion',
} as const;

/** Shows who changed the profile at this path of the API, when, and the profile before each change. */
export function History({ of }: { readonly of: string }): VNode {
  const query = useQuery();
  const cursor = query.get('cursor');
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
                <Change key={`${cursor} ${at}`} of={change} />
              ))}
            </ol>
            {next.after === null && since !== null ? (
              <p class="line muted">
                Changes before <Time at={since} /> are not kept.
              </p>
            ) : null}
            {next.after === null && cursor === '' ? null : (
              <Pager page={{ items: data, total: null, next: next.after }} one="change" />
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

function Change({ of: { at, action, by, job, before } }: { readonly of: ProfileChange }): VNode {
  const facts: readonly Fact[] = [
    ...propertyFacts(before?.metadata ?? {}),
    ['Company', before?.company_id && <Whole of={before.company_id} />],
    [
      job === null ? '' : (jobTypeNames[job.type] ?? job.type),
      job && <a href={jobHref(job.job_id)}>{visibleText(job.filename)}</a>,
    ],
  ];
  return (
    <Entry at={at} facts={facts}>
      {action} by {job === null ? makers[by] : visibleText(job.filename)}{' '}
      {before === null ? null : (
        <>
          <span class="faint">before:</span> <Glance of={before.metadata} />
        </>
      )}
    </Entry>
  );
}
