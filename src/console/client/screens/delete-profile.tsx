import type { VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { DeletionPreview, SuppressionCount } from '../../../api/deletion.ts';
import { api, useApi } from '../lib/api.ts';
import { plural, visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';
import { Check } from '../ui/controls.tsx';
import { ConfirmButton } from '../ui/dialog.tsx';
import { Problems, Section } from '../ui/page.tsx';
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
          sentence={() => 'Later records of this id are accepted. Deleted data does not come back.'}
          verb={() => 'Let them in again'}
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
export function Deletion({ entity, id }: Who): VNode {
  const { route } = useLocation();
  const found = useRef<DeletionPreview | null>(null);
  const [suppress, setSuppress] = useState(false);
  const ids = { [entity]: [id] };
  const keepOut = (
    <Check
      label="Keep this person out: refuse their later records"
      isOn={suppress}
      onChange={() => setSuppress(!suppress)}
    />
  );
  return (
    <ConfirmButton
      label="Delete …"
      needs="delete"
      title={`Delete ${visibleText(id)}`}
      isDestructive
      count={async (signal) => {
        const body = { ...ids, dry_run: true };
        const preview = await api<DeletionPreview>(`/v1/${entity}`, { method: 'DELETE', body, signal });
        found.current = preview;
        return preview.requested - preview.not_found;
      }}
      mayBeNone={() => suppress}
      sentence={() => (found.current === null ? '' : consequence(entity, found.current))}
      beside={entity === 'users' ? keepOut : null}
      verb={() => `Delete this ${words[entity].one}${suppress ? ', and keep them out' : ''}`}
      act={async () => {
        const body = { ...ids, ...(suppress && { suppress }) };
        const job = await api<{ readonly job_id: string }>(`/v1/${entity}`, { method: 'DELETE', body });
        route(jobHref(job.job_id));
      }}
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
