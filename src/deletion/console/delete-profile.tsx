import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { api } from '../../console/client/lib/api.ts';
import { useData } from '../../console/client/lib/data.ts';
import { plural, visibleText } from '../../console/client/lib/format.ts';
import { jobHref } from '../../console/client/lib/jobs.ts';
import { type Entity, type Who, words } from '../../console/client/lib/profiles.ts';
import { Check } from '../../console/client/ui/controls.tsx';
import { Confirm, DialogButton } from '../../console/client/ui/dialog.tsx';
import { Loaded } from '../../console/client/ui/page.tsx';
import type { DeletionPreview } from '../api.ts';

const [choice] = parts.flatMap(({ deletionOption = [] }) => deletionOption);

export function Deletion(who: Who): VNode {
  return (
    <DialogButton label="Delete …" scopes="delete">
      {(close) => <ConfirmDeletion {...who} onClose={close} />}
    </DialogButton>
  );
}

function ConfirmDeletion({ entity, id, onClose }: Who & { readonly onClose: () => void }): VNode {
  const { route } = useLocation();
  const [isChosen, setChosen] = useState(false);
  const option = entity === 'users' ? choice : undefined;
  const chosen = isChosen ? option : undefined;
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
      verb={`Delete this ${words[entity].one}${chosen?.verb ?? ''}`}
      isReady={requested > (chosen === undefined ? missing : 0)}
      act={async () => {
        const how = chosen === undefined ? {} : { [chosen.field]: true };
        const { job_id } = await ask<{ readonly job_id: string }>(how);
        route(jobHref(job_id));
      }}
      onClose={onClose}
    >
      {option && <Check label={option.label} isOn={isChosen} onChange={() => setChosen(!isChosen)} />}
    </Confirm>
  );
}

function consequence(entity: Entity, of: DeletionPreview): string {
  if (of.requested === of.not_found) return 'Nothing is stored under this id.';
  const atLeast = of.is_complete ? '' : 'at least ';
  const archived =
    of.archived_until === null ? '' : ' Archived events are removed too; they are not in this number.';
  const what =
    entity === 'users'
      ? `${of.profiles === 0 ? 'No profile' : 'The profile'} and ${atLeast}${plural(of.events, 'event')} will be removed.`
      : `The profile will be removed, and ${atLeast}${plural(of.users, 'user')} and ${plural(of.events, 'event')} will no longer belong to it.`;
  return `${what}${archived} It takes effect after the loads that were accepted before it, and cannot be undone.`;
}
