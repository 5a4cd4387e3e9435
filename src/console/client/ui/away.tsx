import type { VNode } from 'preact';
import { outage } from '../lib/api.ts';
import { Notice, Time } from './page.tsx';

const outages = {
  unreachable: 'The service has been unreachable',
  overloaded: 'The service has been overloaded',
  database: 'The service has been without its database',
} as const;

export function Away(): VNode | null {
  const { cause = null, since = null } = outage.value ?? {};
  if (cause === null) return null;
  return (
    <div class="away">
      <Notice role="alert">
        {outages[cause]} since <Time at={since} />. This page keeps what it shows, and tries again by itself.
      </Notice>
    </div>
  );
}
