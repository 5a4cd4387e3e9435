import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { SuppressionCount } from '../../../capabilities/suppression/api.ts';
import type { DeletionPreview } from '../../../deletion/api.ts';
import { api } from '../lib/api.ts';
import { useApi, useData } from '../lib/data.ts';
import { plural, visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';
import { Check } from '../ui/controls.tsx';
import { Confirm, ConfirmButton, DialogButton } from '../ui/dialog.tsx';
import { Loaded, Problems, Section } from '../ui/page.tsx';
import { type Entity, type Who, words } from './profiles.tsx';

/** Says that records of a deleted person are refused, and lets them in again. */
export function KeptOut({ id }: Pick<Who, 'id'>): VNode | null {
  const found = useApi<SuppressionCount>(`/v1/suppressions?user_id=${encodeURIComponent(id)}`);
  if (found.error !== null) return <Problems error={found.error} onRetry={found.reload} />;
  if (found.data === undefined || found.data.count === 0) return null;
  return (
    <Section
      title="Kept out"
      aside={
        <ConfirmButton
          label="Let in again …"
          needs="delete"
          title={`Let ${visibleText(id)} in again`}
          sentence="Later records of this id are accepted. Deleted data does not come back."
          verb="Let them in again"
          act={async () => {
            await api('/v1/suppressions', { method: 'DELETE', body: { users: [id] } });
            found.reload();
          }}
        />
      }
    >
      <p>The person was deleted. Records of this id are refused, whichever way they come.</p>
    </Section>
  );
}

/** A button that deletes a profile, after the server has counted what goes with it. */
export function Deletion(who: Who): VNode {
  return (
    <DialogButton label="Delete …" needs="delete">
      {(close) => <ConfirmDeletion {...who} onClose={close} />}
    </DialogButton>
  );
}

function ConfirmDeletion({ entity, id, onClose }: Who & { readonly onClose: () => void }): VNode {
  const { route } = useLocation();
  const [suppress, setSuppress] = useState(false);
  const ask = <T,>(how: object, signal?: AbortSignal): Promise<T> =>
    api<T>(`/v1/${entity}`, { method: 'DELETE', body: { [entity]: [id], ...how }, signal });
  const preview = useData('deletion', (signal) => ask<DeletionPreview>({ dry_run: true }, signal));
  const { requested = 0, not_found: missing = 0 } = preview.data ?? {};
  return (
    <Confirm
      title={`Delete ${visibleText(id)}`}
      isDestructive
      sentence={
        <Loaded of={preview} rows={1} label="The server is counting">
          {(of) => consequence(entity, of)}
        </Loaded>
      }
      beside={
        entity === 'users' ? (
          <Check
            label="Keep this person out: refuse their later records"
            isOn={suppress}
            onChange={() => setSuppress(!suppress)}
          />
        ) : null
      }
      verb={`Delete this ${words[entity].one}${suppress ? ', and keep them out' : ''}`}
      isReady={requested > (suppress ? 0 : missing)}
      act={async () => {
        const { job_id } = await ask<{ readonly job_id: string }>(suppress ? { suppress } : {});
        route(jobHref(job_id));
      }}
      onClose={onClose}
    />
  );
}

/** Returns what would be removed, in a sentence. */
function consequence(entity: Entity, of: DeletionPreview): string {
  if (of.requested === of.not_found) return 'Nothing is stored under this id.';
  const atLeast = of.is_complete ? '' : 'at least ';
  const archived =
    of.archived_until === null ? '' : ' Events in the lake are removed too; they are not in this number.';
  const what =
    entity === 'users'
      ? `${of.profiles === 0 ? 'No profile' : 'The profile'} and ${atLeast}${plural(of.events, 'event')} will be removed.`
      : `The profile will be removed, and ${atLeast}${plural(of.users, 'user')} and ${plural(of.events, 'event')} will no longer belong to it.`;
  return `${what}${archived} It takes effect after the loads that were accepted before it, and cannot be undone.`;
}
