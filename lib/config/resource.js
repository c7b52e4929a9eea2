'use strict'

// The resource: attributes that all spans and metrics share. They come from options, variables, package.json and files of the platform.
// https://opentelemetry.io/docs/specs/semconv/resource/

const fs = require('node:fs')
const path = require('node:path')
const os = require('node:os')
const { randomUUID } = require('node:crypto')
const { version } = require('../../package.json')
const { attempt } = require('../runtime/report.js')
const { deleteOmitted } = require('./attribute-keys.js')
const { EMPTY } = require('./checks.js')
const { VARIABLE_LENGTH_MAX, pairsIn } = require('./env.js')

module.exports = { resolveResource, detectPlatform, serverlessPlatform }

const UNKNOWN_SERVICE = 'unknown_service:node'
const MEBIBYTE = 1024 * 1024

/** Merges the sources, lowest precedence first: detected attributes, OTEL_RESOURCE_ATTRIBUTES, code. */
function resolveResource (given = EMPTY, serviceName, env, omitted = []) {
  const fromEnvironment = parseAttributes(env)
  const manifest = packageManifest() ?? { name: env.text('npm_package_name'), version: env.text('npm_package_version') }
  const platform = detectPlatform(env)
  const attributes = Object.assign(Object.create(null), detected(manifest.version), platform, fromEnvironment, given)
  attributes['service.name'] = String(serviceName ?? given['service.name'] ?? env.text('OTEL_SERVICE_NAME') ??
    fromEnvironment['service.name'] ?? manifest.name ?? platform['faas.name'] ?? UNKNOWN_SERVICE)
  if (attributes['service.version'] === undefined) delete attributes['service.version']
  deleteOmitted(attributes, omitted)
  return Object.freeze({ attributes: Object.freeze(attributes) })
}

function detected (serviceVersion) {
  return {
    'service.name': UNKNOWN_SERVICE, // first in the list, where people look for it
    'service.version': serviceVersion,
    'service.instance.id': randomUUID(),
    'telemetry.sdk.name': 'light-trace',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
    'process.pid': process.pid,
    'process.runtime.name': 'nodejs',
    'process.runtime.version': process.versions.node,
    'host.name': os.hostname()
  }
}

// Specification, "Resource SDK": on any error the entire value is discarded.
function parseAttributes (env) {
  const name = 'OTEL_RESOURCE_ATTRIBUTES'
  const text = env.text(name) ?? ''
  const pairs = text.length > VARIABLE_LENGTH_MAX ? null : pairsIn(text)
  if (pairs?.every(([key, value]) => key !== '' && value !== undefined)) return { __proto__: null, ...Object.fromEntries(pairs) }
  env.ignored(name, text, "a list such as 'k=v,k2=v2', percent-encoded")
  return EMPTY
}

/**
 * Returns name and version of the application, from the package.json nearest to the started script. If the script is a tool in
 * node_modules (fastify-cli, a test runner), from the one nearest to the working directory.
 * @returns {{ name: string, version: string | undefined } | undefined}
 */
function packageManifest () {
  try {
    const script = process.argv[1]
    const started = script === undefined ? undefined : fs.realpathSync.native(script) // plain realpathSync checks each folder
    const isTool = started === undefined || started.split(path.sep).includes('node_modules')
    for (let directory = isTool ? process.cwd() : path.dirname(started); ; directory = path.dirname(directory)) {
      const manifest = readManifest(path.join(directory, 'package.json'))
      if (manifest !== undefined || directory === path.dirname(directory)) return manifest
    }
  } catch {} // the script or the working directory does not exist
}

// A package.json without a name ({ "type": "commonjs" }) only marks a folder of a package, so the search continues.
function readManifest (file) {
  try {
    const stat = fs.statSync(file, { throwIfNoEntry: false })
    if (stat === undefined || stat.size > MEBIBYTE) return undefined
    const { name, version } = Object.assign(Object.create(null), JSON.parse(fs.readFileSync(file, 'utf8')))
    if (typeof name === 'string' && name !== '') return { name, version: typeof version === 'string' ? version || undefined : undefined }
  } catch {} // an unreadable file counts as absent
}

// Detects the platform (container, Kubernetes, functions, clouds) from variables and files. It makes no requests, because a missing
// metadata server would cost a second at every start. It does not read command lines and users, which may hold secrets.

const CGROUP = '/proc/self/cgroup'
const MOUNTS = '/proc/self/mountinfo'
const NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'

const FILE_CHARS_MAX = 65536
const VALUE_CHARS_MAX = 1024

// Before the id: a slash, `docker-` or `cri-containerd-`, or a final colon. After it: `.scope`, or folders that the container created.
const CGROUP_ID = /[/:-]([0-9a-f]{64})(?=\.scope|\/|$)/g
const FARGATE_ID = /\/([0-9a-f]{32}-[0-9]{6,12})$/
// Matches Docker's containers/<id>/hostname, and overlay-containers/<id>/userdata/hostname of Podman and CRI-O. Does not match
// containerd's sandboxes/<id>/hostname, whose id is the pod's.
const HOSTNAME_MOUNT = /[/-]containers\/([0-9a-f]{64})\/\S*$/
const POD_MOUNT = /\/pods\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})\/etc-hosts$/
const CONTAINER_MOUNT = /\/pods\/[0-9a-f-]{32,36}\/containers\/([^/\s]{1,63})\/[^/\s]{1,64}$/

/** @returns {'vercel' | 'lambda' | 'cloud_run' | null} the platform that freezes or ends the process between requests */
function serverlessPlatform (env) {
  if (env.text('VERCEL') !== undefined) return 'vercel'
  if (env.text('AWS_LAMBDA_FUNCTION_NAME') !== undefined) return 'lambda'
  const isCloudRun = env.text('K_SERVICE', 'CLOUD_RUN_JOB') !== undefined && env.text('KUBERNETES_SERVICE_HOST') === undefined
  return isCloudRun ? 'cloud_run' : null
}

/** Returns attributes from the environment and files. read(path) returns '' for an unreadable file. */
function detectPlatform (env, read = readStart) {
  const isKubernetes = env.text('KUBERNETES_SERVICE_HOST') !== undefined
  let containerId = containerIn(read(CGROUP))
  const mounts = containerId === undefined || isKubernetes ? read(MOUNTS) : ''
  containerId ??= inMount(mounts, '/etc/hostname', HOSTNAME_MOUNT)
  const found = { ...isKubernetes && podOf(env, mounts, read), 'container.id': containerId, ...cloudOf(env, isKubernetes) }
  for (const [key, value] of Object.entries(found)) {
    if (value === undefined || value === '') delete found[key]
    else if (typeof value === 'string') found[key] = value.slice(0, VALUE_CHARS_MAX)
  }
  return found
}

// Returns the id of the innermost container, from the first line that has one.
function containerIn (cgroup) {
  for (const line of cgroup.split('\n')) {
    const id = [...line.matchAll(CGROUP_ID)].at(-1) ?? FARGATE_ID.exec(line)
    if (id !== null) return id[1]
  }
}

// Matches a pattern against the source that is mounted at `point`: the fourth field of the line, before the mount point.
function inMount (mounts, point, pattern) {
  const at = mounts.indexOf(` ${point} `)
  return at === -1 ? undefined : pattern.exec(mounts.slice(mounts.lastIndexOf('\n', at) + 1, at))?.[1]
}

// The variables have the most common names for the downward API: the operator's, and those of examples.
function podOf (env, mounts, read) {
  const node = env.text('K8S_NODE_NAME', 'NODE_NAME', 'OTEL_RESOURCE_ATTRIBUTES_NODE_NAME')
  const host = env.text('HOSTNAME')
  return {
    // With host networking, HOSTNAME is the node's name.
    'k8s.pod.name': env.text('K8S_POD_NAME', 'POD_NAME', 'OTEL_RESOURCE_ATTRIBUTES_POD_NAME') ?? (host === node ? undefined : host),
    'k8s.pod.uid': env.text('K8S_POD_UID', 'POD_UID', 'OTEL_RESOURCE_ATTRIBUTES_POD_UID') ?? inMount(mounts, '/etc/hosts', POD_MOUNT),
    'k8s.namespace.name': env.text('K8S_NAMESPACE_NAME', 'K8S_NAMESPACE', 'POD_NAMESPACE') ?? read(NAMESPACE).trim(),
    'k8s.node.name': node,
    'k8s.container.name': env.text('K8S_CONTAINER_NAME', 'CONTAINER_NAME') ?? inMount(mounts, '/dev/termination-log', CONTAINER_MOUNT)
  }
}

function cloudOf (env, isKubernetes) {
  const text = (...names) => env.text(...names)
  const faas = (name, version) => ({ 'faas.name': text(name), 'faas.version': text(version) })
  if (text('VERCEL')) return { 'cloud.region': text('VERCEL_REGION') } // it runs on a Lambda that is not the user's
  if (text('AWS_LAMBDA_FUNCTION_NAME')) {
    const logGroup = text('AWS_LAMBDA_LOG_GROUP_NAME')
    return {
      ...cloud('aws', 'aws_lambda', text('AWS_REGION')),
      ...faas('AWS_LAMBDA_FUNCTION_NAME', 'AWS_LAMBDA_FUNCTION_VERSION'),
      'faas.instance': text('AWS_LAMBDA_LOG_STREAM_NAME'),
      'faas.max_memory': integer(text('AWS_LAMBDA_FUNCTION_MEMORY_SIZE'), MEBIBYTE),
      'aws.log.group.names': logGroup && [logGroup]
    }
  }
  if (text('ECS_CONTAINER_METADATA_URI_V4', 'ECS_CONTAINER_METADATA_URI')) return cloud('aws', 'aws_ecs', text('AWS_REGION', 'AWS_DEFAULT_REGION'))
  if (text('GAE_SERVICE')) {
    return { ...cloud('gcp', 'gcp_app_engine'), ...faas('GAE_SERVICE', 'GAE_VERSION'), 'faas.instance': text('GAE_INSTANCE') }
  }
  if (text('K_SERVICE')) {
    // Knative sets the same variables on any cluster. Outside Kubernetes they come from Cloud Run or from Cloud Functions on it.
    const platform = text('FUNCTION_TARGET') ? 'gcp_cloud_functions' : 'gcp_cloud_run'
    return { ...!isKubernetes && cloud('gcp', platform), ...faas('K_SERVICE', 'K_REVISION') }
  }
  if (text('CLOUD_RUN_JOB')) {
    return {
      ...cloud('gcp', 'gcp_cloud_run'),
      'faas.name': text('CLOUD_RUN_JOB'),
      'gcp.cloud_run.job.execution': text('CLOUD_RUN_EXECUTION'),
      'gcp.cloud_run.job.task_index': integer(text('CLOUD_RUN_TASK_INDEX'))
    }
  }
  const site = text('WEBSITE_SITE_NAME')
  if (site === undefined) return {}
  if (!text('FUNCTIONS_EXTENSION_VERSION')) return cloud('azure', 'azure.app_service', text('REGION_NAME'))
  return { ...cloud('azure', 'azure.functions', text('REGION_NAME')), 'faas.name': site, 'faas.instance': text('WEBSITE_INSTANCE_ID') }
}

function cloud (provider, platform, region = undefined) {
  return { 'cloud.provider': provider, 'cloud.platform': platform, 'cloud.region': region }
}

function integer (text, unit = 1) {
  return Number.isInteger(Number(text)) ? Number(text) * unit : undefined
}

function readStart (file) {
  return attempt(() => fs.readFileSync(file, 'latin1').slice(0, FILE_CHARS_MAX)) ?? ''
}
