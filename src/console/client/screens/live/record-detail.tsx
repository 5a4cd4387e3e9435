import type { VNode } from 'preact';
import { formatMs, visibleText } from '../../lib/format.ts';
import { screenHref } from '../../lib/place.ts';
import { CopyButton } from '../../ui/copy.tsx';
import { Facts, Section } from '../../ui/page.tsx';
import { Time } from '../../ui/time.tsx';
import type { Line } from './live-record.ts';

/** One record: as it was sent, and where its user or company, or its job, is. */
export function RecordDetail({ line }: { readonly line: Line }): VNode {
  const { userId, companyId, jobId, body } = line;
  return (
    <Section title="Record" aside={body === '' ? undefined : <CopyButton text={body} />}>
      <Facts
        of={[
          ['At', <Time key="at" at={line.at} />],
          ['By', line.route],
          ['Took', line.ms === null ? null : formatMs(line.ms)],
          ['Refused because', line.reason === '' ? null : visibleText(line.reason)],
          ['User', userId === null ? null : <ProfileLink entity="people" id={userId} />],
          ['Company', companyId === null ? null : <ProfileLink entity="companies" id={companyId} />],
          ['Job', jobId === null ? null : <a href={screenHref(`/jobs/${jobId}`)}>{jobId}</a>],
          ['Key', line.keyId],
          ['Request', line.requestId],
        ]}
      />
      {body === '' ? null : (
        <section class="live-body" aria-label="As it was sent">
          <pre class="code">{visibleText(body)}</pre>
        </section>
      )}
    </Section>
  );
}

function ProfileLink({
  entity,
  id,
}: {
  readonly entity: 'people' | 'companies';
  readonly id: string;
}): VNode {
  return <a href={screenHref(`/${entity}/${encodeURIComponent(id)}`)}>{visibleText(id)}</a>;
}
