import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import { screenHref, useQuery, withQuery } from '../../console/client/lib/address.ts';
import { useApi, useApiPage } from '../../console/client/lib/data.ts';
import { formatCount, visibleText } from '../../console/client/lib/format.ts';
import { jobHref } from '../../console/client/lib/jobs.ts';
import { profileHref, type Who, words } from '../../console/client/lib/profiles.ts';
import { Button } from '../../console/client/ui/controls.tsx';
import { type Column, List, Pager } from '../../console/client/ui/list.tsx';
import {
  Empty,
  Entry,
  type Fact,
  Facts,
  Loaded,
  Page,
  Section,
  Time,
} from '../../console/client/ui/page.tsx';
import { FullValue, PropertySummary, propertyFacts } from '../../console/client/ui/properties.tsx';
import { Deletion } from '../../deletion/console/delete-profile.tsx';
import { jobTypeNames } from '../../jobs/console/job-types.ts';
import type { Profile, ProfileChange, ProfileHistory, StoredEvent } from '../api.ts';

export function User(): VNode {
  return <OneProfile entity="users" />;
}

export function Company(): VNode {
  return <OneProfile entity="companies" />;
}

function pathOf({ entity, id }: Who): string {
  return `/v1/${entity}/${encodeURIComponent(id)}`;
}

function OneProfile({ entity }: Pick<Who, 'entity'>): VNode {
  const { id = '' } = useRoute().params;
  const { title, screen, one } = words[entity];
  const who = { entity, id };
  const profile = useApi<Profile>(pathOf(who));
  const isMissing = profile.error?.status === 404;
  return (
    <Page
      title={visibleText(id)}
      parent={{ title, href: screenHref(screen) }}
      actions={
        <>
          <a class="button" href={screenHref('/export', { [`${one}_id`]: id })}>
            Export this {one}
          </a>
          <Deletion {...who} />
        </>
      }
    >
      {isMissing ? (
        <Missing {...who} />
      ) : (
        <Loaded of={profile}>
          {(data) => (
            <div class="columns">
              <div class="stack">
                <Stored entity={entity} profile={data} />
                <History of={pathOf(who)} />
              </div>
              <div class="stack">{entity === 'users' ? <Events id={id} /> : <Members id={id} />}</div>
            </div>
          )}
        </Loaded>
      )}
    </Page>
  );
}

/** On request, shows other data that is stored under the same id. */
function Missing({ entity, id }: Who): VNode {
  const [isOpen, open] = useState(false);
  if (isOpen)
    return (
      <>
        {parts.map(({ UserPanel }, at) => UserPanel && <UserPanel key={at} id={id} />)}
        <History of={pathOf({ entity, id })} />
        <Events id={id} />
      </>
    );
  return (
    <Section title="Profile">
      <Empty title="No profile has this id">
        <p>No load or request has identified it, or it was deleted.</p>
        {entity === 'companies' ? null : (
          <p>
            <Button onClick={() => open(true)}>Look for its events and its deletion</Button>
          </p>
        )}
      </Empty>
    </Section>
  );
}

function Stored({ entity, profile }: Pick<Who, 'entity'> & { readonly profile: Profile }): VNode {
  const { company_id: company, company_name: name } = profile;
  const link = company && (
    <a href={profileHref('companies', company)}>
      <bdi>{visibleText(name == null ? company : `${name} (${company})`)}</bdi>
    </a>
  );
  const entityFacts: readonly Fact[] = entity === 'companies' ? [] : [['Company', link]];
  return (
    <>
      <Section title="Profile">
        <Facts
          of={[
            ...entityFacts,
            ['First seen', <Time key="first" at={profile.first_seen_at} />],
            ['Last seen', <Time key="last" at={profile.last_seen_at} />],
            ['Changed', <Time key="changed" at={profile.updated_at} />],
          ]}
        />
      </Section>
      <Properties of={profile.metadata} />
    </>
  );
}

type Row = readonly [name: string, value: unknown];

const propertyColumns: readonly Column<Row>[] = [
  ['Name', ([name]) => <bdi class="name">{visibleText(name)}</bdi>],
  ['Value', ([, value]) => <FullValue of={value} />],
];

function Properties({ of }: { readonly of: Profile['metadata'] }): VNode {
  const rows: readonly Row[] = Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <List
      title="Properties"
      aside={<span class="faint num">{formatCount(rows.length)}</span>}
      of={rows}
      columns={propertyColumns}
      empty="No properties"
    />
  );
}

function Events({ id }: Pick<Who, 'id'>): VNode {
  const events = useApiPage<StoredEvent>(`/v1/users/${encodeURIComponent(id)}/events?limit=12`);
  const none = <Empty title="No events" />;
  return (
    <Section title="Latest events" flush>
      <Loaded of={events} rows={5} none={none}>
        {({ items }) => (items.length === 0 ? none : <EventList of={items} />)}
      </Loaded>
    </Section>
  );
}

function EventList({ of }: { readonly of: readonly StoredEvent[] }): VNode {
  return (
    <ol class="events">
      {of.map(({ event_id, event_name, inserted_at, metadata, source }) => (
        <Entry
          key={event_id}
          at={inserted_at}
          facts={[
            ...propertyFacts(metadata),
            ['source', visibleText(source)],
            ['event id', <code key="id">{visibleText(event_id)}</code>],
          ]}
        >
          <bdi>{visibleText(event_name)}</bdi>
        </Entry>
      ))}
    </ol>
  );
}

function Members({ id }: Pick<Who, 'id'>): VNode {
  const users = useApiPage<Profile>(`/v1/users?limit=20&company_id=${encodeURIComponent(id)}`);
  return (
    <List
      title={users.data?.next == null ? 'Users' : `Users, the first ${users.data.items.length}`}
      aside={<a href={screenHref('/people', { company_id: id })}>All its users</a>}
      of={{ ...users, data: users.data?.items }}
      room={3}
      caption="Users of the company, by id"
      columns={memberColumns}
      keyOf={({ user_id = '' }) => user_id}
      hrefOf={({ user_id = '' }) => profileHref('users', user_id)}
      empty="No users"
    />
  );
}

const memberColumns: readonly Column<Profile>[] = [
  ['Id', ({ user_id = '' }) => <bdi class="break">{visibleText(user_id)}</bdi>],
  ['Last seen', ({ last_seen_at }) => <Time at={last_seen_at} ago />, 'num'],
];

const makers = {
  load: 'a load that is no longer kept',
  request: 'a request',
  operator: 'an operator',
  deletion: 'a deletion',
} as const;

/** `of` is the API path of the profile. */
function History({ of }: { readonly of: string }): VNode {
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
    ['Company', before?.company_id && <FullValue of={before.company_id} />],
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
          <span class="faint">before:</span> <PropertySummary of={before.metadata} />
        </>
      )}
    </Entry>
  );
}
