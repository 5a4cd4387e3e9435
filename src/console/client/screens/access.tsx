import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, type Scope, session } from '../lib/api.ts';
import { visibleText } from '../lib/format.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { useQuery } from '../lib/use-query.ts';
import { Badge, type Tone } from '../ui/badge.tsx';
import { CopyButton } from '../ui/copy.tsx';
import { Confirm, Dialog } from '../ui/dialog.tsx';
import { Field } from '../ui/field.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { Environments } from './environments.tsx';

interface Key {
  readonly key_id: string;
  readonly label: string;
  readonly scopes: readonly Scope[];
  readonly status: 'live' | 'expired' | 'revoked';
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

interface Setting {
  readonly name: string;
  readonly value: string;
  readonly source: string;
  readonly meaning: string;
}

const path = '/v1/keys';
const tones: Readonly<Record<Key['status'], Tone>> = { live: 'good', expired: 'off', revoked: 'bad' };
const allScopes = ['ingest', 'import', 'export', 'read', 'delete'] as const;

/** Keys of the environment, environments, settings of the server; for administrators. */
export function Access(): VNode {
  if (session.value?.is_admin !== true) {
    return (
      <Page title="Access">
        <div class="panel">
          <Empty title="Keys and settings are for administrators">
            Sign in with ADMIN_KEY, or by the link that the service prints when it starts.
          </Empty>
        </div>
      </Page>
    );
  }
  return (
    <Page title="Access">
      <Keys />
      <div class="columns">
        <Environments />
      </div>
      <Settings />
    </Page>
  );
}

function Keys(): VNode {
  const { data, error, reload } = useData(path, (signal) => api<readonly Key[]>(path, { signal }));
  const [isMaking, setMaking] = useState(false);
  const [shown, setShown] = useState<string | null>(null);
  const issue = (key: string): void => {
    setShown(key);
    reload();
  };
  return (
    <Section
      title={`Keys of ${session.value?.environment ?? ''}`}
      aside={
        <button type="button" class="button button-main" onClick={() => setMaking(true)}>
          Make a key …
        </button>
      }
      flush
    >
      {isMaking ? <NewKey onClose={() => setMaking(false)} onMade={issue} /> : null}
      {shown === null ? null : <Shown text={shown} onClose={() => setShown(null)} />}
      <Problems error={error} onRetry={reload} />
      {data === undefined ? (
        <Loading />
      ) : data.length === 0 ? (
        <Empty title="There is no key" />
      ) : (
        <Table
          caption="API keys, newest first"
          isTall
          columns={columnsWith(reload, issue)}
          rows={data}
          keyOf={({ key_id }) => key_id}
        />
      )}
    </Section>
  );
}

function columnsWith(onChange: () => void, onIssued: (key: string) => void): readonly Column<Key>[] {
  return [
    {
      id: 'label',
      title: 'Key',
      cell: ({ label, key_id }) => (
        <span class="two-lines">
          <strong class="break">{visibleText(label)}</strong>
          <code class="faint">{key_id}</code>
        </span>
      ),
    },
    { id: 'status', title: 'State', cell: ({ status }) => <Badge tone={tones[status]}>{status}</Badge> },
    { id: 'scopes', title: 'Scopes', isMinor: true, cell: ({ scopes }) => scopes.join(', ') },
    {
      id: 'used',
      title: 'Last used',
      isNumber: true,
      cell: ({ last_used_at }) => <Time at={last_used_at} ago />,
    },
    {
      id: 'end',
      title: 'Expires',
      isNumber: true,
      isMinor: true,
      cell: ({ expires_at }) => (expires_at === null ? 'never' : <Time at={expires_at} />),
    },
    {
      id: 'do',
      title: 'Actions',
      cell: (key) => <KeyActions of={key} onChange={onChange} onIssued={onIssued} />,
    },
  ];
}

function KeyActions({
  of,
  onChange,
  onIssued,
}: {
  readonly of: Key;
  readonly onChange: () => void;
  readonly onIssued: (key: string) => void;
}): VNode | null {
  const [asked, setAsked] = useState<'rotate' | 'revoke' | null>(null);
  if (of.status !== 'live') return null;
  return (
    <div class="row">
      <button type="button" class="button" onClick={() => setAsked('rotate')}>
        Rotate …<span class="visually-hidden"> {of.label}</span>
      </button>
      <button type="button" class="button button-quiet" onClick={() => setAsked('revoke')}>
        Revoke …<span class="visually-hidden"> {of.label}</span>
      </button>
      {asked === 'rotate' ? (
        <Confirm
          title={`Rotate ${visibleText(of.label)}`}
          count={async () => 1}
          sentence={() =>
            'A second key with the same label and scopes is made, and shown once. This one keeps working: revoke it when every caller has the new one.'
          }
          verb={() => 'Make the second key'}
          act={async () => {
            const { key } = await api<{ readonly key: string }>(`${path}/${of.key_id}/rotate`, {
              method: 'POST',
              body: {},
            });
            onIssued(key);
          }}
          onClose={() => setAsked(null)}
        />
      ) : null}
      {asked === 'revoke' ? (
        <Confirm
          title={`Revoke ${visibleText(of.label)}`}
          isDestructive
          count={async () => 1}
          sentence={() =>
            'Requests with this key are refused from now on, for good. Sessions that began with it end.'
          }
          verb={() => 'Revoke this key'}
          act={async () => {
            await api(`${path}/${of.key_id}/revoke`, { method: 'POST' });
            onChange();
          }}
          onClose={() => setAsked(null)}
        />
      ) : null}
    </div>
  );
}

function NewKey({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: (key: string) => void;
}): VNode {
  const [label, setLabel] = useState('');
  const [scopes, setScopes] = useState<readonly Scope[]>(['read']);
  const [end, setEnd] = useState('');
  const make = useAction(async () => {
    const body = { label, scopes, ...(end === '' ? {} : { expires_at: end }) };
    const { key } = await api<{ readonly key: string }>(path, { method: 'POST', body });
    onMade(key);
    onClose();
  });
  const toggle = (scope: Scope): void =>
    setScopes(scopes.includes(scope) ? scopes.filter((each) => each !== scope) : [...scopes, scope]);
  return (
    <Dialog
      title="Make a key"
      onClose={onClose}
      foot={
        <button
          type="button"
          class="button button-main"
          disabled={label.trim() === '' || scopes.length === 0 || make.isRunning}
          onClick={() => void make.run()}
        >
          Make it
        </button>
      }
    >
      <Problems error={make.error} />
      <Field label="What it is for">
        <input
          class="wide"
          type="text"
          value={label}
          maxLength={100}
          onInput={(event) => setLabel(event.currentTarget.value)}
        />
      </Field>
      <fieldset class="checks">
        <legend class="field-label">What it may do</legend>
        {allScopes.map((scope) => (
          <label key={scope}>
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
            {scope}
          </label>
        ))}
      </fieldset>
      <Field label="Expires on" hint="Without a day it never expires.">
        <input type="date" value={end} onChange={(event) => setEnd(event.currentTarget.value)} />
      </Field>
    </Dialog>
  );
}

function Shown({ text, onClose }: { readonly text: string; readonly onClose: () => void }): VNode {
  return (
    <Dialog title="The key, shown only this once" onClose={onClose}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too */}
      <pre class="code" tabIndex={0}>
        {text}
      </pre>
      <div class="row">
        <CopyButton text={text} label="Copy the key" />
      </div>
      <p class="hint">Only a digest of it is kept. Send it as Authorization: Token …</p>
    </Dialog>
  );
}

const settingColumns: readonly Column<Setting>[] = [
  {
    id: 'name',
    title: 'Setting',
    cell: ({ name, meaning }) => (
      <span class="two-lines">
        <code class="break">{name}</code>
        <span class="faint">{meaning}</span>
      </span>
    ),
  },
  {
    id: 'value',
    title: 'Value',
    cell: ({ value }) => <code class="setting-value">{value === '' ? '–' : visibleText(value)}</code>,
  },
  { id: 'source', title: 'From', isMinor: true, cell: ({ source }) => source },
];

function Settings(): VNode {
  const query = useQuery();
  const isAll = query.get('settings') === 'all';
  const { data, error, reload } = useData('/v1/settings', (signal) =>
    api<readonly Setting[]>('/v1/settings', { signal }),
  );
  const rows = data?.filter(({ source }) => isAll || source !== 'default') ?? [];
  return (
    <Section
      title="Settings of the server that answered"
      aside={
        <a class="button button-quiet" href={query.href({ settings: isAll ? undefined : 'all' })}>
          {isAll ? 'Only those that were set' : 'Defaults too'}
        </a>
      }
      flush
    >
      <Problems error={error} onRetry={reload} />
      {data === undefined ? (
        <Loading />
      ) : rows.length === 0 ? (
        <Empty title="All settings have their defaults" />
      ) : (
        <Table caption="Settings in force" columns={settingColumns} rows={rows} keyOf={({ name }) => name} />
      )}
    </Section>
  );
}
