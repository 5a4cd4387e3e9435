import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiKey, Environment, Setting } from '../../../api/access.ts';
import { scopes as allScopes, type Scope } from '../../../domain/scope.ts';
import { useQuery } from '../lib/address.ts';
import { api, session } from '../lib/api.ts';
import { visibleText } from '../lib/format.ts';
import { useData } from '../lib/use-data.ts';
import { Badge, type Tone } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Confirm, FormDialog, SecretDialog } from '../ui/dialog.tsx';
import { Checks, Field } from '../ui/field.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Loaded } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/text.tsx';

const path = '/v1/keys';
const tones: Readonly<Record<ApiKey['status'], Tone>> = { live: 'good', expired: 'off', revoked: 'bad' };

/** Keys of the environment, environments, and settings of the server; for administrators. */
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
  const keys = useData(path, (signal) => api<readonly ApiKey[]>(path, { signal }));
  const [isMaking, setMaking] = useState(false);
  const [shown, setShown] = useState<string | null>(null);
  const issue = async (url: string, body: object): Promise<void> => {
    setShown((await api<{ readonly key: string }>(url, { method: 'POST', body })).key);
    keys.reload();
  };
  return (
    <Section
      title={`Keys of ${session.value?.environment ?? ''}`}
      aside={
        <Button look="main" onClick={() => setMaking(true)}>
          Make a key …
        </Button>
      }
      flush
    >
      {isMaking ? <NewKey onClose={() => setMaking(false)} onMake={(body) => issue(path, body)} /> : null}
      {shown === null ? null : (
        <SecretDialog
          noun="key"
          text={shown}
          hint="Only a digest of it is kept. Send it as Authorization: Token …"
          onClose={() => setShown(null)}
        />
      )}
      <Loaded of={keys}>
        {(data) => (
          <Table
            caption="API keys, newest first"
            isTall
            columns={keyColumns(keys.reload, (key) => issue(`${path}/${key.key_id}/rotate`, {}))}
            rows={data}
            keyOf={({ key_id }) => key_id}
            empty={<Empty title="There is no key" />}
          />
        )}
      </Loaded>
    </Section>
  );
}

type Rotate = (key: ApiKey) => Promise<void>;

function keyColumns(onChange: () => void, rotate: Rotate): readonly Column<ApiKey>[] {
  return [
    {
      title: 'Key',
      cell: ({ label, key_id }) => (
        <span class="two-lines">
          <strong class="break">{visibleText(label)}</strong>
          <code class="faint">{key_id}</code>
        </span>
      ),
    },
    { title: 'State', cell: ({ status }) => <Badge tone={tones[status]}>{status}</Badge> },
    { title: 'Scopes', is: 'minor', cell: ({ scopes }) => scopes.join(', ') },
    { title: 'Last used', is: 'num', cell: ({ last_used_at }) => <Time at={last_used_at} ago /> },
    {
      title: 'Expires',
      is: 'num minor',
      cell: ({ expires_at }) => (expires_at === null ? 'never' : <Time at={expires_at} />),
    },
    {
      title: 'Actions',
      cell: (key) =>
        key.status === 'live' ? <KeyActions of={key} onChange={onChange} rotate={rotate} /> : null,
    },
  ];
}

interface KeyActionsProps {
  readonly of: ApiKey;
  readonly onChange: () => void;
  readonly rotate: Rotate;
}

function KeyActions({ of, onChange, rotate }: KeyActionsProps): VNode {
  const [asked, setAsked] = useState<'rotate' | 'revoke' | null>(null);
  const close = (): void => setAsked(null);
  const label = visibleText(of.label);
  return (
    <div class="row">
      <Button onClick={() => setAsked('rotate')}>
        Rotate …<span class="visually-hidden"> {of.label}</span>
      </Button>
      <Button look="quiet" onClick={() => setAsked('revoke')}>
        Revoke …<span class="visually-hidden"> {of.label}</span>
      </Button>
      {asked === 'rotate' ? (
        <Confirm
          title={`Rotate ${label}`}
          sentence={() =>
            'A second key with the same label and scopes is made, and shown once. This one keeps working: revoke it when every caller has the new one.'
          }
          verb={() => 'Make the second key'}
          act={() => rotate(of)}
          onClose={close}
        />
      ) : null}
      {asked === 'revoke' ? (
        <Confirm
          title={`Revoke ${label}`}
          isDestructive
          sentence={() => 'Requests with this key are refused for good. Sessions that began with it end.'}
          verb={() => 'Revoke this key'}
          act={async () => {
            await api(`${path}/${of.key_id}/revoke`, { method: 'POST' });
            onChange();
          }}
          onClose={close}
        />
      ) : null}
    </div>
  );
}

interface NewKeyProps {
  readonly onClose: () => void;
  readonly onMake: (body: object) => Promise<void>;
}

function NewKey({ onClose, onMake }: NewKeyProps): VNode {
  const [label, setLabel] = useState('');
  const [scopes, setScopes] = useState<readonly Scope[]>(['read']);
  const [end, setEnd] = useState('');
  return (
    <FormDialog
      title="Make a key"
      verb="Make the key"
      isComplete={label.trim() !== '' && scopes.length > 0}
      act={() => onMake({ label, scopes, ...(end === '' ? {} : { expires_at: end }) })}
      onClose={onClose}
    >
      <Field label="Used for">
        <input
          class="wide"
          type="text"
          value={label}
          maxLength={100}
          onInput={(event) => setLabel(event.currentTarget.value)}
        />
      </Field>
      <Checks
        label="Scopes"
        options={allScopes.map((scope) => [scope, scope])}
        chosen={scopes}
        onChange={setScopes}
      />
      <Field label="Expires on" hint="Without a date it never expires.">
        <input type="date" value={end} onChange={(event) => setEnd(event.currentTarget.value)} />
      </Field>
    </FormDialog>
  );
}

const environmentColumns: readonly Column<Environment>[] = [
  { title: 'Name', cell: ({ name }) => <strong>{name}</strong> },
  { title: 'App token', cell: ({ app_token }) => <code>{app_token}</code> },
];

function Environments(): VNode {
  const all = useData('/v1/environments', (signal) =>
    api<readonly Environment[]>('/v1/environments', { signal }),
  );
  const [isMaking, setMaking] = useState(false);
  const make = async (name: string): Promise<void> => {
    await api('/v1/environments', { method: 'POST', body: { name } });
    all.reload();
  };
  return (
    <Section title="Environments" aside={<Button onClick={() => setMaking(true)}>Make one …</Button>} flush>
      {isMaking ? <NewEnvironment onClose={() => setMaking(false)} onMake={make} /> : null}
      <Loaded of={all} rows={2}>
        {(data) => (
          <Table caption="Environments" columns={environmentColumns} rows={data} keyOf={({ name }) => name} />
        )}
      </Loaded>
    </Section>
  );
}

interface NewEnvironmentProps {
  readonly onClose: () => void;
  readonly onMake: (name: string) => Promise<void>;
}

function NewEnvironment({ onClose, onMake }: NewEnvironmentProps): VNode {
  const [name, setName] = useState('');
  return (
    <FormDialog
      title="Make an environment"
      verb="Make the environment"
      isComplete={name !== ''}
      act={() => onMake(name)}
      onClose={onClose}
    >
      <Field label="Name" hint="Small letters, digits, _ and -. Sign in again to see it.">
        <input
          class="wide"
          type="text"
          value={name}
          maxLength={63}
          spellcheck={false}
          onInput={(event) => setName(event.currentTarget.value.trim())}
        />
      </Field>
      <p class="hint">
        An environment is a tenant: no other environment reaches its profiles, jobs and keys. It cannot be
        removed.
      </p>
    </FormDialog>
  );
}

const settingColumns: readonly Column<Setting>[] = [
  {
    title: 'Setting',
    cell: ({ name, meaning }) => (
      <span class="two-lines">
        <code class="break">{name}</code>
        <span class="faint">{meaning}</span>
      </span>
    ),
  },
  {
    title: 'Value',
    cell: ({ value }) => <code class="name">{value === '' ? '–' : visibleText(value)}</code>,
  },
  { title: 'From', is: 'minor', cell: ({ source }) => source },
];

function Settings(): VNode {
  const query = useQuery();
  const isAll = query.get('settings') === 'all';
  const settings = useData('/v1/settings', (signal) => api<readonly Setting[]>('/v1/settings', { signal }));
  return (
    <Section
      title="Settings of the server that answered"
      aside={
        <a class="button button-quiet" href={query.href({ settings: isAll ? undefined : 'all' })}>
          {isAll ? 'Only changed settings' : 'Defaults too'}
        </a>
      }
      flush
    >
      <Loaded of={settings}>
        {(data) => (
          <Table
            caption="Settings in force"
            columns={settingColumns}
            rows={data.filter(({ source }) => isAll || source !== 'default')}
            keyOf={({ name }) => name}
            empty={<Empty title="All settings have their defaults" />}
          />
        )}
      </Loaded>
    </Section>
  );
}
