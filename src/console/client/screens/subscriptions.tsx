import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Subscription, TestDelivery } from '../../../api/delivery.ts';
import {
  defaultJobKinds,
  defaultOutcomes,
  type JobKind,
  jobKinds,
  type Outcome,
  outcomes,
} from '../../../domain/notification.ts';
import { api, apiTotal, post, session, useApi } from '../lib/api.ts';
import { formatMs, plural, visibleText } from '../lib/format.ts';
import { ActionButton, Checks, InputField, named } from '../ui/controls.tsx';
import { ConfirmButton, DialogButton, FormDialog, SecretDialog } from '../ui/dialog.tsx';
import { Badge, Empty, Loaded, Section } from '../ui/page.tsx';
import { type Column, Table } from '../ui/table.tsx';

const path = '/v1/subscriptions';

/** Lists who is notified of the ends of jobs. */
export function Subscriptions({ onSent }: { readonly onSent: () => void }): VNode {
  const all = useApi<readonly Subscription[]>(path);
  const isAdmin = session.value?.is_admin === true;
  const [secret, setSecret] = useState<string | null>(null);
  const made = (text: string | null): void => {
    setSecret(text);
    all.reload();
  };
  const title = isAdmin ? undefined : 'For administrators: sign in with ADMIN_KEY';
  return (
    <Section
      title="Who is notified"
      aside={
        <DialogButton label="Notify somebody …" disabled={!isAdmin} title={title}>
          {(close) => <NewSubscription onClose={close} onMade={made} />}
        </DialogButton>
      }
      flush
    >
      {secret === null ? null : (
        <SecretDialog
          noun="secret"
          text={secret}
          hint="It signs each webhook: docs/notifications.md."
          onClose={() => setSecret(null)}
        />
      )}
      <Loaded of={all} rows={2}>
        {(data) => (
          <Table
            caption="Subscriptions"
            isTall
            columns={[...subscriptionColumns(onSent), ...(isAdmin ? [leaveColumn(all.reload)] : [])]}
            rows={data}
            keyOf={({ id }) => id}
            empty={
              <Empty title="Nobody is notified of the ends of jobs">
                <code>sluice notifications add --url https://example.com/hooks</code>
              </Empty>
            }
          />
        )}
      </Loaded>
    </Section>
  );
}

function subscriptionColumns(onSent: () => void): readonly Column<Subscription>[] {
  return [
    { title: 'Recipient', cell: ({ target }) => <span class="name">{visibleText(target)}</span> },
    {
      title: 'State',
      cell: ({ disabled_reason: why }) => (
        <span class="two-lines">
          <span>
            <Badge tone={why === null ? 'good' : 'bad'}>{why === null ? 'live' : 'disabled'}</Badge>
          </span>
          {why === null ? null : <span class="faint break">{visibleText(why)}</span>}
        </span>
      ),
    },
    {
      title: 'Notified of',
      is: 'minor',
      cell: ({ on, types }) => `${types.join(', ')}: ${on.join(', ').replaceAll('_', ' ')}`,
    },
    { title: 'Action', cell: (each) => <Ping of={each} onSent={onSent} /> },
  ];
}

/** Returns what a receiver answered, or why there is no answer. */
export function answerOf(status: number | null, error: string | null): VNode {
  const text = error !== null ? visibleText(error) : status === null ? '–' : `HTTP ${status}`;
  return <span class="break">{text}</span>;
}

function Ping({ of, onSent }: { readonly of: Subscription; readonly onSent: () => void }): VNode {
  const [result, setResult] = useState<TestDelivery | null>(null);
  const ping = async (): Promise<void> => {
    setResult(await post<TestDelivery>(`${path}/${of.id}/test`));
    onSent();
  };
  return (
    <div class="row">
      <ActionButton needs="import" disabled={of.disabled_reason !== null} act={ping}>
        Send a ping
      </ActionButton>
      <span aria-live="polite" class={result?.delivered === false ? 'bad' : 'muted'}>
        {result?.delivered === true ? `arrived in ${formatMs(result.took_ms)}` : null}
        {result?.delivered === false ? answerOf(result.status, result.error) : null}
      </span>
    </div>
  );
}

function leaveColumn(onDone: () => void): Column<Subscription> {
  return {
    title: 'Remove',
    cell: ({ id, target }) => (
      <ConfirmButton
        look="quiet"
        label={named('Remove …', target)}
        title={`Stop notifying ${visibleText(target)}`}
        isDestructive
        mayBeNone={() => true}
        count={(signal) => apiTotal('/v1/deliveries', { state: 'pending' }, signal)}
        sentence={(count) =>
          `Nothing more is sent there, and its secret is deleted. ${plural(count, 'delivery', 'deliveries')} of the environment ${count === 1 ? 'is' : 'are'} pending; those to this recipient are given up.`
        }
        verb={() => 'Remove it'}
        act={async () => {
          await api(`${path}/${id}`, { method: 'DELETE' });
          onDone();
        }}
      />
    ),
  };
}

const outcomeNames: Readonly<Record<Outcome, string>> = {
  completed: 'completed',
  completed_with_rejects: 'completed, with refused records',
  failed: 'failed',
  cancelled: 'cancelled',
};
const kindNames: Readonly<Record<JobKind, string>> = {
  load: 'loads',
  export: 'exports',
  schedule: 'runs of schedules',
};

interface NewProps {
  readonly onClose: () => void;
  /** Receives the secret of a webhook, which is shown once; `null` for an address. */
  readonly onMade: (secret: string | null) => void;
}

/** Adds a webhook or an e-mail address that is notified of the ends of jobs. */
function NewSubscription({ onClose, onMade }: NewProps): VNode {
  const [target, setTarget] = useState('');
  const [on, setOn] = useState(defaultOutcomes);
  const [types, setTypes] = useState(defaultJobKinds);
  const make = async (): Promise<void> => {
    const text = target.trim();
    const body = { ...(text.includes('://') ? { url: text } : { email: text }), on, types };
    onMade((await post<{ readonly secret: string | null }>(path, body)).secret);
  };
  return (
    <FormDialog
      title="Notify somebody"
      verb="Notify"
      isComplete={target.trim() !== '' && on.length > 0 && types.length > 0}
      act={make}
      onClose={onClose}
    >
      <InputField
        label="Webhook or address"
        hint="https://example.com/hooks, or ops@example.com"
        value={target}
        onInput={setTarget}
      />
      <Checks
        label="Outcomes"
        options={outcomes.map((each) => [each, outcomeNames[each]])}
        chosen={on}
        onChange={setOn}
      />
      <Checks
        label="Jobs"
        options={jobKinds.map((each) => [each, kindNames[each]])}
        chosen={types}
        onChange={setTypes}
      />
    </FormDialog>
  );
}
