'use strict'

// uPlot does much that the page never asks for, and that a bundler has to keep: other scales, bands, a legend, zooming. Here the answers that are
// always the same in our charts are written into its source, so that esbuild drops what follows from other answers. test/browser/charts.test.js
// compares what both draw.
//
// Each is [pattern, what is there instead; nothing if left out], and must be found, so that another version of uPlot is looked at again.

const EXPORTS = [
  [/\nuPlot\.assign = assign;[^]*\(paths\.bars {4}= bars\);[^]*?\n}\n/, '\nuPlot.paths = { bars };\n'],
  [/\ton\(dppxchange, win, \(\) => \{ uPlot\.pxRatio = pxRatio; \}\);\n/],
  [/typeof window != 'undefined'/, 'true'],
  [/typeof queueMicrotask == "undefined" \? .* : queueMicrotask/, 'queueMicrotask'],
  [/o instanceof TypedArray\b/, 'false'],
  [/const TypedArray = .*/]
]

// Time from left to right, the same for all lines; values upwards. Both are linear, and chart.mjs says which part is shown and how it is written.
const SCALES = [
  [/mode: ifNull\(opts\.mode, 1\),/],
  [/\bmode == 1\b|\bms == 1\b/g, 'true'],
  [/\bmode == 2\b/g, 'false'],
  [/\b(?:scaleX|sx)\.ori == 0|\bsori == 0/g, 'true'],
  [/\bscaleX\.ori == 1|\bsori == 1|\brotSrc(?= \?)/g, 'false'],
  [/let (?:rotSrc|sori) .*/g],
  [/\bconst (?:dir|_dirX) = scaleX\.dir \* .*/g],
  [/(?<![.\w])(?:dir|_dirX) == 1\b/g, 'true'],
  [/(?<![.\w])dir == -1\b|\b(?:scale|sc)\.dir == -1/g, 'false'],
  [/(?<=i \+= |[-+] )dir\b|\b_dirX\b|\bdir\b(?=, pixelForX, alignGaps)/g, '1'],
  [/let distr = .*|const xScaleDistr .*/g],
  [/\b(?:(?:sc|wsc|scale)\.distr|distr|xScaleDistr) +== +(?:2|3|4|100)\b|\bsc\.distr >= 3/g, 'false'],
  [/\bscaleX\.distr != 2|\bsc\.distr == 1\b|\bscaleX\.time\b/g, 'true'],
  [/\b(?:scaleOpts|sc|wsc)\.from != null/g, 'false'],
  [/\b(?:sc|wsc)\.from == null/g, 'true'],
  [/let isTime = sc\.time;\s+let rn = [^]*?sc\.range = [^]*?\n\t{4}\)\);\s+sc\.auto = fnOrSelf\(.*/, 'sc.auto = fnOrSelf(sc.auto);'],
  [/sc\.clamp = fnOrSelf\(.*/],
  [/\nconst (?:numFormatter|fmtNum|wholeIncrs|sign|log2|\[ timeIncrsS,).*|\ngenIncrs\(2,.*/g],
  [/const months = \[[^]*?(?=\/\/export const series)|const NL = [^]*?const _ = null;/g],
  [/const _timeAxisStamps = \[[^]*?\n\t\];|\t_timeAxisStamps,\n|_timeAxisStampsMs, /g],
  [/const _fmtDate = [^]*?const _timeSeriesVal .*/, 'const _timeAxisSplits = timeAxisSplitsMs(_tzDate);'],
  [/let av = axis\.values;\s+axis\.values = \([^]*?numAxisVals\n\t{3}\);/],
  [/let isTime = true && scales[^]*?s\.label = .*/]
]

// Lines without bands, and rectangular bars of one colour.
const PATHS = [
  [/let \[ bandFillDir, bandClipDir \] = .*/],
  [/\bseries\.fill != null \|\| bandFillDir != 0|\bbandClipDir != 0|\bflags != 0(?= && bands)|\bseries\.spanGaps\b|\w+Path instanceof Map\b/g, 'false'],
  [/ \|\| bandClip\)/g, ')'],
  [/if \(bandClip\)/, 'if (false)'],
  [/s\.fillTo \|\| seriesFillTo/, '0'],
  [/const bands .*|const CLIP_FILL_STROKE = .*/g],
  [/bands\.forEach\(b => \{[^]*?\n\t\}\);/],
  [/const facet = [^]*?(?=const gaps)|const xySeriesOpts = [^]*?\n\};/g],
  // There are never four times as many values as pixels.
  [/\bdecimate\b(?=\))/, 'false'],
  [/const decimate = .*|const drawAcc[HV] = .*|drawAcc = drawAcc[HV];/g],
  [/lineTo, drawAcc;/, 'lineTo;'],
  [/const rectH = rect\(0\);/, 'const rectH = (p, x, y, w, h) => { p.rect(x, y, w, h); };'],
  [/const rectV = .*/],
  [/\bori == 0 \? rectH : rectV/, 'rectH'],
  [/let ro = opts\.radius;[^]*?const radiusFn.*|let valRadius, baseRadius;[^]*?\[baseRadius, valRadius\] = .*/g],
  [/let (?:radVal|radBase|rv|rb) = .*|, rv, rb(?=\))/g],
  [/\bdispFills != null && \(.*?\)(?=\))|\bx0 != null && size != null\b|\by0 != null && y1 != null\b|\bmultiPath\b(?! =)|\bband != null\b/g, 'false'],
  [/\bdisp != null/, 'true'],
  [/let band = ifNull\(.*|let multiPath = .*|let (?:fill|stroke)(?:Colors|Paths) = null;/g],
  [/(?:let|const) \{.* \} = disp;|const (?:disp|_each) = .*|let each = [^]*?\n\t{3}\};|\beach\(u, seriesIdx, i,[^]*?\);/g]
]

// Without title, legend, labels, ticks or borders of axes; nothing that locks the cursor or zooms, and nothing that is added later.
const REST = [
  [/\bconst (?:showLegend|showCursor) = .*/g],
  [/\blegend\.show && legend\.live && shouldSetLegend\b/, 'false'],
  [/\bshowLegend\b|\bcursor\._?lock\b(?! =)|\bdrag\.setScale\b|\bdeferHooks(?=\))|\baxis\.label != null|\b(?:border|ticks)\.show\b/g, 'false'],
  [/\bshowCursor\b|\blegend\.live\b|\bselect\.(?:show|over)\b(?= [&?]|\))|\baxis\.show\b(?= &&|\))/g, 'true'],
  [/assign\(\{\}, legendOpts, opts\.legend\)/, '{}'],
  [/const markers {4}= [^]*?\n\t}\n|\tlet legendTable;[^]*?const soff = .*\n|legendTable\?\.remove\(\);.*/g],
  [/if \(opts\.id != null\)[^]*?const can = /, 'const can = '],
  [/addClass\(\w+, s\.class\);|\n\t\(opts\.plugins \|\| \[\]\)\.forEach[^]*?\n\t\}\);\n/g],
  [/if \(then\) \{[^]*?\n\t\telse\n\t\t\tthen\(self, _init\);\n\t\}\n\telse\n\t\t_init\(\);/, 'then.appendChild(root);\n_init();'],
  [/\(opts\.padding \|\| \[.*?\]\)\.map\(.*?\);/, 'opts.padding.map(fnOrSelf);'],
  [/\bbias == 0 \|\| bias == -?1\b|\bcursor\.dataIdx == null|\bwithProx\b(?=\))/g, 'true'],
  [/\bbias != 0|\buni != null|\bgetBBox != null|\bangle(?=\) \{|\s\|\|| [<>])|\baxis\.alignTo == 2|\baxis\.align == \d/g, 'false'],
  [/let (?:bias|angle|uni|_tickSize|withProx|_setAlpha) = .*|let (?:ticks|border) = axis\.\w+;|,\s+getBBox = points\.bbox/g],
  [/const (?:labelFont|font) .*|labelFont,|\tfont,|axis\.labelFont = .*|axis\.(?:rotate|border\.stroke|ticks\.stroke) {1,3}= fnOrSelf\(.*\);|axis\._rotate = .*/g],
  [/\[axis\.font, axis\.labelFont\]/, '[axis.font]'],
  [/round\(_tickSize \* pxRatio\)/, '0'],
  [/if \(opts\.show != null\) \{[^]*?\n\t\t\}\n|let (?:deferHooks|hooksQueue) = .*|\b_setAlpha && .*/g],
  // Only the chart with the mouse needs to know where it is. To ask that of each chart would compute the page's layout anew for each.
  [/(if \(rect == null\)\n\t\t\tsyncRect\(false\);)(\n\n\t\tsetCursorEvent\(e\);\n\n\t\tif \(e != null\) \{)/, '$2\n$1'],
  // Charts that move their cursors together publish moves only.
  [/events\.(?:mousedown|mouseup|dblclick) = .*|onMouse\(dblclick, .*|events\["setSeries"\] = [^]*?\n\t\};|pubSync\((?:mousedown|mouseup), .*|_pub && pubSync\("setSeries".*/g],
  [/let shouldPub = .*|, shouldPub\b|, src == null && syncOpts\.setSeries/g],
  [functionsOf('initLegendRow|syncLegend|setLegendValues|toggleDOM|autoPadSide|setAlpha|dblClick|batch|flushHooks|addSeries|delSeries|addBand|setBand|delBand')]
]

module.exports = { onlyUsed }

function onlyUsed (source) {
  for (const [pattern, replacement = ''] of [...EXPORTS, ...SCALES, ...PATHS, ...REST]) {
    const next = source.replace(pattern, replacement)
    if (next === source) throw new Error(`${pattern} is not in uPlot`)
    source = next
  }
  return source
}

function functionsOf (names) {
  return new RegExp(`\\n(\\t*)function (?:${names})\\([^]*?\\n\\1}\\n|self\\.(?:${names}) = \\w+;`, 'g')
}
