import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../lib/api.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Field } from '../ui/field.tsx';
import { Section } from '../ui/page.tsx';
import { Loading, Problems } from '../ui/problems.tsx';
import { Table } from '../ui/table.tsx';

/** All of the service; for administrators. */
export function Environments(): VNode {
  const { data, error, reload } = useData('/v1/environments', (signal) =>
    api<readonly { readonly name: string; readonly app_token: string }[]>('/v1/environments', { signal }),
  );
  const [isMaking, setMaking] = useState(false);
  return (
    <Section
      title="Environments"
      aside={
        <button type="button" class="button" onClick={() => setMaking(true)}>
          Make one …
        </button>
      }
      flush
    >
      {isMaking ? <NewEnvironment onClose={() => setMaking(false)} onMade={reload} /> : null}
      <Problems error={error} onRetry={reload} />
      {data === undefined ? (
        <Loading rows={2} />
      ) : (
        <Table
          caption="Environments"
          columns={[
            { id: 'name', title: 'Name', cell: ({ name }) => <strong>{name}</strong> },
            { id: 'token', title: 'App token', cell: ({ app_token }) => <code>{app_token}</code> },
          ]}
          rows={data}
          keyOf={({ name }) => name}
        />
      )}
    </Section>
  );
}

function NewEnvironment({
  onClose,
  onMade,
}: {
  readonly onClose: () => void;
  readonly onMade: () => void;
}): VNode {
  const [name, setName] = useState('');
  const make = useAction(async () => {
    await api('/v1/environments', { method: 'POST', body: { name } });
    onMade();
    onClose();
  });
  return (
    <Dialog
      title="Make an environment"
      onClose={onClose}
      foot={
        <button
          type="button"
          class="button button-main"
          disabled={name === '' || make.isRunning}
          onClick={() => void make.run()}
        >
          Make it
        </button>
      }
    >
      <Problems error={make.error} />
      <Field label="Its name" hint="Small letters, digits, _ and -. Sign in again to see it.">
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
        A tenant: its profiles, jobs and keys are unreachable from any other. It cannot be removed.
      </p>
    </Dialog>
  );
}
