import type { VNode } from 'preact';
import type { Overview } from '../../../api/overview.ts';
import type { NeedKind } from '../../../domain/need.ts';
import { screenHref } from '../lib/address.ts';
import { plural, visibleText } from '../lib/format.ts';
import { jobHref, refusedHref } from '../lib/jobs.ts';
import type { OverviewFindings, OverviewHealth } from '../lib/records.ts';
import { Badge, type Tone } from '../ui/badge.tsx';
import { Icon } from '../ui/icons.tsx';
import { Section } from '../ui/page.tsx';

const healthTones: Readonly<Record<OverviewHealth['status'], readonly [Tone, string]>> = {
  ready: ['good', 'ready'],
  degraded: ['warn', 'degraded'],
  not_ready: ['bad', 'not ready'],
};

/** Returns where each need leads; the subject is the one job or schedule that it is about. */
const places: Readonly<Record<NeedKind, (subject: string | null) => string>> = {
  records_unaccounted: () => screenHref('/jobs'),
  schedules_failing: (name) => screenHref(name === null ? '/schedules' : `/schedules/${name}`),
  jobs_failed: (job) =>
    job === null ? screenHref('/jobs', { status: 'failed', since: dayAgo() }) : jobHref(job),
  inbox_files_refused: () => screenHref('/inbox'),
  deliveries_dead: () => screenHref('/deliveries', { state: 'dead' }),
  records_refused: (job) => (job === null ? screenHref('/jobs', { has_rejects: 'true' }) : refusedHref(job)),
  inbox_files_with_rejects: () => screenHref('/inbox'),
  runs_skipped: () => screenHref('/schedules'),
};

export const dayMs = 86_400_000;

/** Returns the day on which the last 24 hours began. */
export function dayAgo(): string {
  return new Date(Date.now() - dayMs).toISOString().slice(0, 10);
}

/** Shows one sentence: what needs attention, with a link for each part, and the state of everything else. */
export function Needs({ of: { needs, health, findings } }: { readonly of: Overview }): VNode {
  const isDown = health.status !== 'ready';
  const isBroken = isDown || findings.failed > 0 || needs.some(({ status }) => status === 'failed');
  const level = isBroken ? 'failed' : needs.length > 0 ? 'warning' : 'none';
  return (
    <p class={`needs needs-${level}`} role="status">
      <Icon name={level === 'none' ? 'check' : 'warning'} />
      <span>
        {isDown ? <>The service is {healthTones[health.status][1]} · </> : null}
        {findings.failed === 0 ? null : (
          <>
            <a href="#doctor">{plural(findings.failed, 'check')} of the doctor failed</a> ·{' '}
          </>
        )}
        {needs.map(({ kind, status, subject, says }) => (
          <span key={kind}>
            <a class={`need-${status}`} href={places[kind](subject)}>
              {visibleText(says)}
            </a>{' '}
            ·{' '}
          </span>
        ))}
        {level === 'none' ? 'Nothing needs you: everything works' : 'everything else works'}
      </span>
    </p>
  );
}

/** Shows the dependencies that the service lacks; nothing if it has all of them. */
export function Health({ of: { status, parts } }: { readonly of: OverviewHealth }): VNode | null {
  if (status === 'ready') return null;
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

/** Shows the doctor's findings, first what is wrong. Checks without a finding are folded away. */
export function Findings({ of, server }: { readonly of: OverviewFindings; readonly server: string }): VNode {
  const wrong = of.items.filter(({ status }) => status !== 'ok');
  const well = of.items.filter(({ status }) => status === 'ok');
  wrong.sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  return (
    <Section id="doctor" title="Findings of the doctor" aside={<span class="faint">on {server}</span>}>
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
