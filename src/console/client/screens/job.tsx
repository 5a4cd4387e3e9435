import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import { api } from '../lib/api.ts';
import { screenHref } from '../lib/place.ts';
import { useData } from '../lib/use-data.ts';
import { StatusBadge } from '../ui/badge.tsx';
import { Facts, Page, Section } from '../ui/page.tsx';
import { Loading, Problems } from '../ui/problems.tsx';
import { Time } from '../ui/time.tsx';
import type { JobItem } from './job-record.ts';

/** One load, export or deletion. */
export function Job(): VNode {
  const { job: id = '' } = useRoute().params;
  const path = `/v1/background_jobs/${encodeURIComponent(id)}`;
  const { data, error, reload } = useData(path, (signal) => api<JobItem>(path, { signal }));
  return (
    <Page
      title={data?.filename ?? 'Job'}
      parent={{ title: 'Jobs', href: screenHref('/jobs') }}
      aside={data === undefined ? null : <StatusBadge status={data.status} />}
    >
      <Problems error={error} onRetry={reload} />
      {data === undefined ? (
        <Loading />
      ) : (
        <Section title="Times">
          <Facts
            of={[
              ['Accepted', <Time key="start" at={data.start_time} />],
              ['Ended', <Time key="end" at={data.end_time} />],
            ]}
          />
        </Section>
      )}
    </Page>
  );
}
