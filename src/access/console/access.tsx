import type { ComponentChildren, VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, post, session } from '../../console/client/lib/api.ts';
import { useApi } from '../../console/client/lib/data.ts';
import { visibleText } from '../../console/client/lib/format.ts';
import {
  type ButtonProps,
  Checks,
  Code,
  CopyButton,
  InputField,
  named,
} from '../../console/client/ui/controls.tsx';
import { ConfirmButton, Dialog, DialogButton, FormDialog } from '../../console/client/ui/dialog.tsx';
import { type Column, List } from '../../console/client/ui/list.tsx';
import { Badge, Empty, Page, Time, type Tone, TwoLines } from '../../console/client/ui/page.tsx';
import { keyScopes, type Scope } from '../../domain/caller.ts';
import type { ApiKey, Environment } from '../api.ts';

const path = '/v1/keys';
const tones: Readonly<Record<ApiKey['status'], Tone>> = { live: 'good', expired: 'off', revoked: 'bad' };

export function Access(): VNode {
  return (
    <Page title="Access">
      {session.value?.is_admin === true ? (
        <>
          <Keys />
          <Environments />
        </>
      ) : (
        <div class="panel">
          <Empty title="Keys are for administrators">
            Sign in with ADMIN_KEY, or by the link that the service prints when it starts.
          </Empty>
        </div>
      )}
    </Page>
  );
}

function Keys(): VNode {
  const keys = useApi<readonly ApiKey[]>(path);
  const [shown, setShown] = useState<string | null>(null);
  const issue = async (url: string, body: object): Promise<void> => {
    setShown((await post<{ readonly key: string }>(url, body)).key);
    keys.reload();
  };
  return (
    <List
      title={`API keys of ${session.value?.environment ?? ''}`}
      aside={
        <DialogButton look="main" label="Create a key …">
          {(close) => <NewKey onClose={close} onMake={(body) => issue(path, body)} />}
        </DialogButton>
      }
      of={keys}
      caption="API keys, newest first"
      isTall
      columns={keyColumns(keys.reload)}
      keyOf={({ key_id }) => key_id}
      empty="No keys yet"
    >
      {shown === null ? null : (
        <Dialog title="The key, shown only this once" onClose={() => setShown(null)}>
          <Code>{shown}</Code>
          <div class="row">
            <CopyButton text={shown} label="Copy the key" />
          </div>
          <p class="hint">Only a digest of it is kept. Send it as Authorization: Token …</p>
        </Dialog>
      )}
    </List>
  );
}

function keyColumns(onChange: () => void): readonly Column<ApiKey>[] {
  const revoke = ({ key_id, label }: ApiKey): VNode => (
    <ConfirmButton
      look="quiet"
      label={named('Revoke …', label)}
      title={`Revoke ${visibleText(label)}`}
      isDestructive
      sentence="Requests with this key are refused for good. Sessions that began with it end."
      verb="Revoke this key"
      act={() => post(`${path}/${key_id}/revoke`).then(onChange)}
    />
  );
  return [
    [
      'API key',
      ({ label, key_id }) => (
        <TwoLines below={<code>{key_id}</code>}>
          <strong>{visibleText(label)}</strong>
        </TwoLines>
      ),
    ],
    ['State', ({ status }) => <Badge tone={tones[status]}>{status}</Badge>],
    ['Scopes', ({ scopes }) => scopes.join(', '), 'minor'],
    ['Last used', ({ last_used_at }) => <Time at={last_used_at} ago />, 'num'],
    ['Expires', ({ expires_at }) => (expires_at === null ? 'never' : <Time at={expires_at} />), 'num minor'],
    ['Actions', (key) => (key.status === 'live' ? revoke(key) : null)],
  ];
}

interface NewKeyProps {
  readonly onClose: () => void;
  readonly onMake: (key: object) => Promise<void>;
}

function NewKey({ onClose, onMake }: NewKeyProps): VNode {
  const [label, setLabel] = useState('');
  const [scopes, setScopes] = useState<readonly Scope[]>(['read']);
  const [end, setEnd] = useState('');
  return (
    <FormDialog
      title="Create a key"
      verb="Create the key"
      isReady={label.trim() !== '' && scopes.length > 0}
      act={() => onMake({ label, scopes, ...(end === '' ? {} : { expires_at: end }) })}
      onClose={onClose}
    >
      <InputField label="Used for" value={label} maxLength={100} onInput={setLabel} />
      <Checks
        label="Scopes"
        options={keyScopes.map((scope) => [scope, scope])}
        chosen={scopes}
        onChange={setScopes}
      />
      <InputField
        label="Expires on"
        hint="Without a date it never expires."
        type="date"
        value={end}
        onInput={setEnd}
      />
    </FormDialog>
  );
}

function environmentColumns(onChange: () => void): readonly Column<Environment>[] {
  const change = (name: string, body: object): Promise<void> =>
    api<void>(`/v1/environments/${name}`, { method: 'PATCH', body }).finally(onChange);
  return [
    ['Name', ({ name }) => <strong>{name}</strong>],
    ['App token', ({ app_token }) => <code>{app_token}</code>],
    ['Pages that may send', ({ allowed_origins: origins }) => visibleText(origins.join(', ')) || 'none'],
    [
      'Actions',
      ({ name, allowed_origins: origins }) => (
        <TextButton
          look="quiet"
          opener={named('Pages …', name)}
          title={`Pages that may send records to ${name}`}
          verb="Allow these pages"
          label="Origins"
          hint="Such as https://shop.example.com, separated by spaces. Without one, no page may send."
          first={origins.join(' ')}
          act={(text) => change(name, { allowed_origins: text.split(/[\s,]+/).filter(Boolean) })}
        />
      ),
    ],
  ];
}

interface TextProps extends Pick<ButtonProps, 'look'> {
  readonly opener: ComponentChildren;
  readonly title: string;
  readonly verb: string;
  readonly label: string;
  readonly hint: string;
  readonly first?: string;
  readonly act: (text: string) => Promise<void>;
}

function TextButton({ look, opener, title, verb, label, hint, first, act }: TextProps): VNode {
  const [text, setText] = useState(first ?? '');
  const isReady = first !== undefined || text.trim() !== '';
  return (
    <DialogButton look={look} label={opener}>
      {(close) => (
        <FormDialog title={title} verb={verb} isReady={isReady} act={() => act(text.trim())} onClose={close}>
          <InputField label={label} hint={hint} value={text} onInput={setText} />
        </FormDialog>
      )}
    </DialogButton>
  );
}

function Environments(): VNode {
  const all = useApi<readonly Environment[]>('/v1/environments');
  const make = (name: string) => post('/v1/environments', { name }).then(all.reload);
  const button = (
    <TextButton
      opener="Create one …"
      title="Create an environment"
      verb="Create the environment"
      label="Name"
      hint="Lowercase letters, digits, _ and -. Sign in again to see it. An environment is a tenant: no other reaches its profiles, jobs and keys. It cannot be removed."
      act={make}
    />
  );
  return (
    <List
      title="Environments"
      aside={button}
      of={all}
      room={2}
      isTall
      columns={environmentColumns(all.reload)}
      keyOf={({ name }) => name}
    />
  );
}
