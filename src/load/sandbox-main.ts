import { capabilities } from '../registry.ts';
import { serveTasks } from '../sandbox/sandbox.ts';
import { loadTasks } from './sandbox-tasks.ts';

/* The program of a sandbox: a separate entry point, without anything that a sandbox does not need. */
const ofCapabilities = await Promise.all(capabilities.map(({ sandboxTasks }) => sandboxTasks?.()));
serveTasks(Object.assign({}, loadTasks, ...ofCapabilities));
