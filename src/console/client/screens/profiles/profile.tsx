import type { ComponentChildren, VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import type { Property } from '../../../../api/definition.ts';
import type { DeletionPreview } from '../../../../api/deletion.ts';
import type { StoredEvent } from '../../../../api/event.ts';
import type { UserSegments } from '../../../../api/segment.ts';
import { publicUrl, screenHref } from '../../lib/address.ts';
import { api, apiPage } from '../../lib/api.ts';
import { formatCount, plural, shorten, visibleText } from '../../lib/format.ts';
import { jobHref } from '../../lib/jobs.ts';
import type { Profile } from '../../lib/records.ts';
import { authorization, shellWord } from '../../lib/repeat.ts';
import { useData } from '../../lib/use-data.ts';
import { Button, CopyAs } from '../../ui/button.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { Facts, Page, Section } from '../../ui/page.tsx';
import { Empty, Loaded, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/text.tsx';
import { ActivityPanel } from './profile-activity.tsx';
import { type Entity, loadSegments, profileHref, valueText, words } from './profile-record.ts';

interface Who {
  readonly entity: Entity;
  readonly id: string;
}

/** Shows a user: profile, events, segments; its export and deletion. */
export function User(): VNode {
  return <OneProfile entity="users" />;
}

export function Company(): VNode {
  return <OneProfile entity="companies" />;
}

function OneProfile({ entity }: { readonly entity: Entity }): VNode {
  const { id = '' } = useRoute().params;
  const { title, screen } = words[entity];
  const path = `/v1/${entity}/${encodeURIComponent(id)}`;
  const profile = useData(path, (signal) => api<Profile>(path, { signal }));
  const isEventsOnly = entity === 'users' && profile.error?.status === 404;
  return (
    <Page
      title={visibleText(id)}
      parent={{ title, href: screenHref(screen) }}
      actions={<Actions entity={entity} id={id} />}
    >
      {isEventsOnly ? null : <Problems error={profile.error} onRetry={profile.reload} />}
      <div class="columns">
        <div class="stack">
          {isEventsOnly ? (
            <Section title="Profile">
              <Empty title="There is no profile of this id">
                Nothing has identified it. If events name it, they are shown here.
              </Empty>
            </Section>
          ) : profile.data === undefined ? (
            <Loading />
          ) : (
            <Stored entity={entity} id={id} profile={profile.data} />
          )}
          <Same entity={entity} id={id} />
        </div>
        <div class="stack">
          <ActivityPanel entity={entity} id={id} />
          {entity === 'users' ? <Events id={id} /> : <Members id={id} />}
        </div>
      </div>
    </Page>
  );
}

function Stored({ entity, id, profile }: Who & { readonly profile: Profile }): VNode {
  const { company_id } = profile;
  const company =
    entity === 'companies' ? null : company_id === null ? (
      'none'
    ) : (
      <a href={profileHref('companies', company_id)}>{visibleText(company_id)}</a>
    );
  return (
    <>
      <Section title="Profile">
        <Facts
          of={[
            ['Company', company],
            ['First seen', <Time key="first" at={profile.first_seen_at} />],
            ['Last seen', <Time key="last" at={profile.last_seen_at} />],
            ['Changed', <Time key="changed" at={profile.updated_at} />],
            ['Segments', entity === 'users' ? <Segments key="segments" id={id} /> : null],
          ]}
        />
      </Section>
      <Properties entity={entity} of={profile.metadata} />
    </>
  );
}

function Properties({ entity, of }: { readonly entity: Entity; readonly of: Profile['metadata'] }): VNode {
  const path = words[entity].properties;
  const types = useData(path, (signal) => api<readonly Property[]>(path, { signal }));
  const typeOf = new Map(types.data?.map(({ key, data_type }) => [key, data_type]));
  const rows = Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1));
  const columns: readonly Column<(typeof rows)[number]>[] = [
    { title: 'Name', cell: ([name]) => <span class="name">{visibleText(name)}</span> },
    { title: 'Value', cell: ([, value]) => <Value of={value} /> },
    {
      title: 'Type',
      is: 'minor',
      cell: ([name]) => <span class="faint">{typeOf.get(name) ?? 'string'}</span>,
    },
  ];
  return (
    <Section title="Properties" aside={<span class="faint num">{formatCount(rows.length)}</span>} flush>
      <Problems error={types.error} onRetry={types.reload} />
      <Table
        caption="Properties, by name"
        columns={columns}
        rows={rows}
        keyOf={([name]) => name}
        empty={<Empty title="It has no properties" />}
      />
    </Section>
  );
}

/** A longer value is folded. */
const longText = 120;

function Value({ of }: { readonly of: unknown }): VNode {
  const text = visibleText(valueText(of));
  if (text.length <= longText) return <span class="break">{text}</span>;
  return (
    <details class="long">
      <summary class="break">{visibleText(shorten(valueText(of), longText))}</summary>
      <p class="break">{text}</p>
    </details>
  );
}

function Segments({ id }: { readonly id: string }): ComponentChildren {
  const path = `/v1/users/${encodeURIComponent(id)}/segments`;
  const found = useData(path, (signal) => api<UserSegments>(path, { signal }));
  const names = useData('segments', loadSegments);
  if (found.error !== null) return <Problems error={found.error} onRetry={found.reload} />;
  if (found.data === undefined) return <span class="faint">…</span>;
  const { segment_ids, asked, total } = found.data;
  const titleOf = new Map(names.data?.data.map(({ id: segment, title }) => [segment, title]));
  const rest = total - asked;
  return (
    <span class="tags">
      {segment_ids.length === 0 && rest === 0 ? 'none' : null}
      {segment_ids.map((segment) => (
        <a key={segment} class="tag" href={screenHref(`/segments/${segment}`)}>
          {visibleText(titleOf.get(segment) ?? `Segment ${segment}`)}
        </a>
      ))}
      {rest > 0 ? (
        <span class="faint">{plural(rest, 'segment')} not checked: that takes too long</span>
      ) : null}
    </span>
  );
}

function Events({ id }: { readonly id: string }): VNode {
  const path = `/v1/users/${encodeURIComponent(id)}/events?limit=12`;
  const events = useData(path, (signal) => apiPage<StoredEvent>(path, { signal }));
  return (
    <Section title="Latest events" flush>
      {events.error?.status === 404 ? null : <Problems error={events.error} onRetry={events.reload} />}
      {events.data === undefined && events.error === null ? <Loading rows={5} /> : null}
      {(events.data?.items.length ?? 0) === 0 && !events.isLoading ? <Empty title="No events" /> : null}
      <ol class="events">
        {events.data?.items.map((event) => (
          <li key={event.event_id}>
            <details>
              <summary>
                <span class="break">{visibleText(event.event_name)}</span>
                <Time at={event.inserted_at} />
              </summary>
              <Facts
                of={[
                  ...Object.entries(event.metadata).map(
                    ([name, value]) => [visibleText(name), <Value key={name} of={value} />] as const,
                  ),
                  ['source', visibleText(event.source)],
                  [
                    'event id',
                    <span key="id" class="mono break">
                      {visibleText(event.event_id)}
                    </span>,
                  ],
                ]}
              />
            </details>
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Members({ id }: { readonly id: string }): VNode {
  const path = `/v1/users?limit=20&company_id=${encodeURIComponent(id)}`;
  const users = useData(path, (signal) => apiPage<Profile>(path, { signal }));
  return (
    <Section
      title={users.data?.next == null ? 'Users' : `Users, the first ${users.data.items.length}`}
      aside={<a href={screenHref('/people', { company_id: id })}>All its users</a>}
      flush
    >
      <Loaded of={users} rows={3}>
        {({ items }) => (
          <Table
            caption="Users of the company, by id"
            columns={memberColumns}
            rows={items}
            keyOf={({ user_id = '' }) => user_id}
            hrefOf={({ user_id = '' }) => profileHref('users', user_id)}
            empty={<Empty title="No user belongs to it" />}
          />
        )}
      </Loaded>
    </Section>
  );
}

const memberColumns: readonly Column<Profile>[] = [
  { title: 'Id', cell: ({ user_id = '' }) => <span class="break">{visibleText(user_id)}</span> },
  { title: 'Last seen', is: 'num', cell: ({ last_seen_at }) => <Time at={last_seen_at} ago /> },
];

function Actions({ entity, id }: Who): VNode {
  const [isAsking, setAsking] = useState(false);
  const { one, filter } = words[entity];
  return (
    <>
      <a class="button" href={screenHref('/export', { [filter]: id })}>
        Export this {one}
      </a>
      <Button needs="delete" onClick={() => setAsking(true)}>
        Delete …
      </Button>
      {isAsking ? <ConfirmDeletion entity={entity} id={id} onClose={() => setAsking(false)} /> : null}
    </>
  );
}

function ConfirmDeletion({ entity, id, onClose }: Who & { readonly onClose: () => void }): VNode {
  const { route } = useLocation();
  const found = useRef<DeletionPreview | null>(null);
  const { one } = words[entity];
  const body = { [entity]: [id] };
  return (
    <Confirm
      title={`Delete ${visibleText(id)}`}
      isDestructive
      count={async (signal) => {
        const preview = await api<DeletionPreview>(`/v1/${entity}/deletion_preview`, {
          method: 'POST',
          body,
          signal,
        });
        found.current = preview;
        return preview.requested - preview.not_found;
      }}
      sentence={() => (found.current === null ? '' : consequence(entity, found.current))}
      verb={() => `Delete this ${one}`}
      act={async () => {
        const job = await api<{ readonly job_id: string }>(`/v1/${entity}`, { method: 'DELETE', body });
        route(jobHref(job.job_id));
      }}
      onClose={onClose}
    />
  );
}

/** Returns what would be removed, in a sentence. */
function consequence(entity: Entity, of: DeletionPreview): string {
  if (of.requested === of.not_found) return 'Nothing of it is stored any more.';
  const atLeast = of.is_complete ? '' : 'at least ';
  const archived =
    of.archived_until === null ? '' : ' Archived events are removed too; they are not in this number.';
  const what =
    entity === 'users'
      ? `${of.profiles === 0 ? 'No profile' : 'The profile'} and ${atLeast}${plural(of.events, 'event')} will be removed.`
      : `The profile will be removed. ${atLeast}${plural(of.users, 'user')} and ${plural(of.events, 'event')} will no longer belong to it.`;
  return `${what}${archived} It takes effect after the loads that were accepted before it, and cannot be undone.`;
}

function Same({ entity, id }: Who): VNode {
  const url = publicUrl(`/v1/${entity}/${encodeURIComponent(id)}`);
  return (
    <Section title="As command">
      <CopyAs
        forms={[
          { name: 'curl', text: `curl ${authorization} ${shellWord(url)}` },
          { name: 'Command line', text: `sluice ${entity} show ${shellWord(id)}` },
        ]}
      />
    </Section>
  );
}
