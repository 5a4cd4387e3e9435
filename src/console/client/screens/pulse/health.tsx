import type { VNode } from 'preact';
import { plural, visibleText } from '../../lib/format.ts';
import { Badge, type Tone } from '../../ui/badge.tsx';
import { Section } from '../../ui/page.tsx';
import type { OverviewFindings, OverviewHealth } from './overview.ts';

const healthTones: Readonly<Record<OverviewHealth['status'], readonly [Tone, string]>> = {
  ready: ['good', 'ready'],
  degraded: ['warn', 'degraded'],
  not_ready: ['bad', 'not ready'],
};

export function Health({ of: { status, parts } }: { readonly of: OverviewHealth }): VNode {
  const [tone, word] = healthTones[status];
  const away = Object.entries(parts).flatMap(([part, state]) => (state === 'away' ? part : []));
  return (
    <Badge tone={tone}>
      {word}
      {away.length === 0 ? '' : `: ${away.join(' and ')} away`}
    </Badge>
  );
}

const findingTones = { ok: 'good', warning: 'warn', failed: 'bad' } as const;
const order = ['failed', 'warning', 'ok'] as const;

/** What the doctor finds: first what is wrong; what is well is folded away. */
export function Findings({ of, server }: { readonly of: OverviewFindings; readonly server: string }): VNode {
  const wrong = of.items.filter(({ status }) => status !== 'ok');
  const well = of.items.filter(({ status }) => status === 'ok');
  wrong.sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  return (
    <Section title="Findings of the doctor" aside={<span class="faint">on {server}</span>}>
      {of.is_known ? null : <p class="muted">The checks have not ended yet.</p>}
      {of.is_known && of.items.length === 0 ? <p class="muted">{summary(of)}</p> : null}
      {wrong.length === 0 ? null : <FindingList items={wrong} />}
      {well.length === 0 ? null : (
        <details class="pulse-well" open={false}>
          <summary>{plural(well.length, 'check is fine', 'checks are fine')}</summary>
          <FindingList items={well} />
        </details>
      )}
    </Section>
  );
}

function summary({ warnings, failed }: OverviewFindings): string {
  const found = `${plural(failed, 'failure', 'failures')} and ${plural(warnings, 'warning')}`;
  return `${found}: the operator of the service sees what they are.`;
}

function FindingList({ items }: { readonly items: OverviewFindings['items'] }): VNode {
  return (
    <ul class="finding-list">
      {items.map(({ check, status, found, advice }, at) => (
        <li key={`${check} ${at}`}>
          <Badge tone={findingTones[status]}>{status}</Badge>
          <div>
            <strong>{check}</strong>
            <p>{visibleText(found)}</p>
            {advice === null ? null : <p class="muted">{visibleText(advice)}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}
