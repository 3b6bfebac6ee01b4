// The files of this folder that are included in a page.
#pragma once

#include <string_view>

namespace rehearse::html {

extern const std::string_view kPageCss, kUPlotMinCss, kUPlotIifeMinJs, kLICENSE;
extern const std::string_view kFormatJs, kTimelineJs, kChartsJs, kFiguresJs, kReportJs, kSweepJs;

}  // namespace rehearse::html
