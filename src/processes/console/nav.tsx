import { signal } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { chooseEnvironment, signOut } from '../../access/console/session.tsx';
import { consoleRoot, screenHref } from '../../console/client/lib/address.ts';
import { session } from '../../console/client/lib/api.ts';
import { useAction, useApi } from '../../console/client/lib/data.ts';
import { timeZone, visibleText } from '../../console/client/lib/format.ts';
import { navGroups, type Screen } from '../../console/client/part.ts';
import { ActionButton, Button, Select } from '../../console/client/ui/controls.tsx';
import { Dialog } from '../../console/client/ui/dialog.tsx';
import { Icon, iconOnly, Mark } from '../../console/client/ui/drawings.tsx';
import { Facts, Problems } from '../../console/client/ui/page.tsx';
import type { Overview } from '../../jobs/overview-api.ts';
import { screens } from './screens.ts';

const help = signal(false);

export function Nav(): VNode {
  const path = useLocation().path.slice(consoleRoot.length) || '/';
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  return (
    <div class="nav" data-open={isOpen ? '' : undefined}>
      <header class="row nav-top">
        <a class="row push brand" href={screenHref('/')}>
          <Mark />
          sluice
        </a>
        <Environment />
        <button
          type="button"
          class="button button-quiet button-icon nav-toggle"
          aria-expanded={isOpen}
          aria-controls="nav-body"
          onClick={() => setOpen(!isOpen)}
        >
          {iconOnly(isOpen ? 'close' : 'menu', 'Menu')}
        </button>
      </header>
      <div class="nav-body" id="nav-body">
        <nav aria-label="Screens">
          {navGroups.map((group) => (
            <Group key={group} group={group} path={path} />
          ))}
        </nav>
        <Foot />
      </div>
    </div>
  );
}

function Group({ group, path }: { readonly group: string; readonly path: string }): VNode {
  return (
    <>
      {group === '' ? null : <p class="nav-group">{group}</p>}
      <ul>
        {screens.map(({ path: target, nav }) =>
          nav?.[2] === group ? (
            <li key={target}>
              <a
                class="row"
                href={screenHref(target)}
                aria-current={isWithin(path, target) ? 'page' : undefined}
              >
                <Icon name={nav[1]} />
                {nav[0]}
              </a>
            </li>
          ) : null,
        )}
      </ul>
    </>
  );
}

function isWithin(path: string, target: Screen['path']): boolean {
  return path === target || (target !== '/' && path.startsWith(`${target}/`));
}

function Environment(): VNode {
  const { environment = '', environments = [] } = session.value ?? {};
  const move = useAction(chooseEnvironment);
  const options = environments.map((name) => [name, name] as const);
  return (
    <>
      <span class="muted small environment" title="Environment">
        {options.length < 2 ? (
          environment
        ) : (
          <Select
            label="Environment"
            value={environment}
            options={options}
            onChange={(name) => void move.run(name)}
          />
        )}
      </span>
      <Problems error={move.error} />
    </>
  );
}

function Foot(): VNode {
  const { version, key_id } = session.value ?? {};
  return (
    <footer class="nav-foot">
      <div class="row">
        <Button look="quiet button-icon" onClick={() => (help.value = true)}>
          {iconOnly('keyboard', 'Keyboard (?)')}
        </Button>
        <ActionButton look="quiet button-icon" act={signOut}>
          {iconOnly('leave', 'Sign out')}
        </ActionButton>
      </div>
      <Health />
      <p class="nav-small">
        Key <span class="mono">{key_id}</span>
        <br />
        Times: {timeZone}
        <br />
        sluice {version}
      </p>
    </footer>
  );
}

const healthMs = 60_000;

function Health(): VNode | null {
  const { data } = useApi<Overview>('/v1/overview', healthMs);
  if (data === undefined) return null;
  const { health, findings } = data;
  const [worst] = ['failed', 'warning'].flatMap((state) =>
    findings.items.filter((item) => item.status === state),
  );
  const isBad = health.status !== 'ready' || findings.failed > 0;
  let words = 'All checks are fine';
  if (health.status !== 'ready') words = `The service is ${health.status.replace('_', ' ')}`;
  else if (worst !== undefined) words = `${worst.check}: ${worst.found}`;
  else if (isBad) words = 'A health check failed';
  let color = 'good';
  if (isBad) color = 'bad';
  else if (worst !== undefined) color = 'warn';
  return (
    <a class="row nav-small health" href={screenHref('/')}>
      <span class="dot" style={{ background: `var(--${color})` }} />
      <span class="cut">{visibleText(words)}</span>
    </a>
  );
}

const keys: readonly (readonly [string, string])[] = [
  ['?', 'this page'],
  ['/', 'to the first filter'],
  ['j  k', 'next and previous row, from anywhere on the page'],
  ['↓  ↑', 'the same, from a row'],
  ['Enter', 'open the row'],
  ['Esc', 'close a dialog, leave a field'],
];

export function Keys(): ComponentChildren {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const { key, target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]') !== null) return;
      if (isTyping(target)) {
        if (key === 'Escape') (target as HTMLElement).blur();
        return;
      }
      if (key === '?') help.value = true;
      else if (key === '/' ? focusOn('.filters input, .filters select') : moveFocus(key, target))
        event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  const close = (): void => {
    help.value = false;
  };
  return help.value ? (
    <Dialog title="Keyboard" onClose={close}>
      <Facts of={keys.map(([typed, what]) => [<Typed key={typed} keys={typed.split(/\s+/)} />, what])} />
    </Dialog>
  ) : null;
}

function Typed({ keys: names }: { readonly keys: readonly string[] }): VNode {
  return (
    <span class="row">
      {names.map((each) => (
        <kbd key={each}>{each}</kbd>
      ))}
    </span>
  );
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['radio', 'checkbox', 'button'].includes(target.type);
  return target.matches('textarea, select');
}

const steps: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  j: 1,
  ArrowUp: -1,
  k: -1,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/**
 * From a button in a row, j and k move the focus to that row. From outside the rows, they move it
 * to the selected or first row. Returns false if the focus does not move.
 */
function moveFocus(key: string, from: EventTarget | null): boolean {
  const step = steps[key];
  if (step === undefined || !(from instanceof HTMLElement)) return false;
  const rows = [...document.querySelectorAll<HTMLElement>('#main [data-row]')];
  const at = rows.indexOf(from);
  if (at >= 0) {
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    next?.focus();
    return next !== from;
  }
  if (key !== 'j' && key !== 'k') return false;
  const row = from.closest('tr')?.querySelector<HTMLElement>('[data-row]');
  row?.focus();
  return row != null || focusOn('#main [data-selected] [data-row]') || focusOn('#main [data-row]');
}

function focusOn(selector: string): boolean {
  const first = document.querySelector<HTMLElement>(selector);
  first?.focus();
  return first !== null;
}
